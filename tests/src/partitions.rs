//! Making disk images out of file systems, and reading file systems out of disk images, without loop devices.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result};
use gpt::disk::LogicalBlockSize;
use gpt::mbr::ProtectiveMBR;
use gpt::partition::PartitionAttributes;
use gpt::partition_types::{EFI, LINUX_FS, Type};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::tool;

/// One mebibyte, in bytes.
pub const MIB: u64 = 1 << 20;

/// Everything made twice from one input shall be the same bytes.
const DISK_GUID: u128 = 0xfa22_1e12_0000_4000_8000_0000_0000_0000;
const FS_UUID: &str = "fa221e12-0000-4000-8000-0000000000ff";

/// Logical sectors of a disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Sector {
    /// 512 bytes.
    #[default]
    B512,
    /// 4096 bytes: a 4Kn disk.
    B4096,
}

impl Sector {
    /// Its size in bytes.
    pub fn bytes(self) -> u64 {
        self.block_size().into()
    }

    fn block_size(self) -> LogicalBlockSize {
        match self {
            Self::B512 => LogicalBlockSize::Lb512,
            Self::B4096 => LogicalBlockSize::Lb4096,
        }
    }
}

/// What a partition is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// EFI system partition; where the disk has boot code, that starts it too.
    Esp,
    /// Linux data.
    Linux,
}

/// One partition of an image to be made.
#[derive(Clone, Debug)]
pub struct Partition {
    /// GPT partition name.
    pub name: &'static str,
    /// What it is for.
    pub kind: Kind,
    /// File whose bytes fill the partition; its length is the partition's.
    pub content: PathBuf,
}

/// A disk image to be made: a GPT and its partitions, in order, on 1 MiB boundaries.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    /// The partitions.
    pub parts: Vec<Partition>,
    /// Sectors of the disk it is made for.
    pub sector: Sector,
    /// What a BIOS is to run, at most 440 bytes; empty for none.
    pub boot_code: Vec<u8>,
}

impl Layout {
    /// Writes the image to `out`: just long enough, zero wherever no partition has data.
    ///
    /// # Errors
    /// When a content cannot be read or the table does not hold what was asked for.
    pub fn write(&self, out: &Path) -> Result<()> {
        let mut start = MIB;
        let mut placed = Vec::new();
        for part in &self.parts {
            let size = fs::metadata(&part.content)
                .with_context(|| format!("find {}", part.content.display()))?
                .len()
                .next_multiple_of(MIB);
            placed.push((part, start, size));
            start += size;
        }
        let file = File::create(out).with_context(|| format!("create {}", out.display()))?;
        file.set_len(start + MIB).context("size the image")?;
        self.write_table(out, &placed).with_context(|| format!("partition {}", out.display()))?;
        for (part, start, _) in placed {
            copy_sparse(&part.content, out, start)
                .with_context(|| format!("copy partition {} into {}", part.name, out.display()))?;
        }
        Ok(())
    }

    fn write_table(&self, out: &Path, placed: &[(&Partition, u64, u64)]) -> Result<()> {
        let sector = self.sector.bytes();
        let mut entries = BTreeMap::new();
        for (number, (part, start, size)) in (1_u32..).zip(placed) {
            let (kind, flags) = self.kind(part.kind);
            let entry = gpt::partition::Partition {
                part_type_guid: kind,
                part_guid: Uuid::from_u128(DISK_GUID + u128::from(number)),
                first_lba: start / sector,
                last_lba: (start + size) / sector - 1,
                flags: flags.bits(),
                name: part.name.to_owned(),
            };
            entries.insert(number, entry);
        }
        let config = gpt::GptConfig::new().writable(true).logical_block_size(self.sector.block_size());
        let mut table = config.create(out)?;
        table.update_guid(Some(Uuid::from_u128(DISK_GUID)));
        table.update_partitions(entries)?;
        let mut file = table.write()?;
        let sectors = file.metadata()?.len() / sector;
        let mut mbr = ProtectiveMBR::with_lb_size(u32::try_from(sectors - 1).unwrap_or(u32::MAX));
        let mut code = [0; 440];
        code.get_mut(..self.boot_code.len())
            .context("boot code is too long")?
            .copy_from_slice(&self.boot_code);
        mbr.set_bootcode(code);
        mbr.overwrite_lba0(&mut file)?;
        Ok(())
    }

    fn kind(&self, kind: Kind) -> (Type, PartitionAttributes) {
        match kind {
            Kind::Esp if !self.boot_code.is_empty() => (EFI, PartitionAttributes::BOOTABLE),
            Kind::Esp => (EFI, PartitionAttributes::empty()),
            Kind::Linux => (LINUX_FS, PartitionAttributes::empty()),
        }
    }
}

/// Makes an ext4 file system of `size` bytes in the file `image`, filled from `tree` when there is one.
///
/// # Errors
/// When mke2fs fails, as it does when the tree does not fit.
pub fn ext4(image: &Path, size: u64, label: &str, tree: Option<&Path>) -> Result<PathBuf> {
    // e2fsprogs puts one to two UUIDs and time stamps of its own in otherwise.
    let mut command = Command::new("mke2fs");
    command.env("E2FSPROGS_FAKE_TIME", "1").env("SOURCE_DATE_EPOCH", "1");
    command.args(["-q", "-F", "-t", "ext4", "-b", "4096", "-m", "0", "-U", FS_UUID, "-L", label]);
    command
        .arg("-E")
        .arg(format!("hash_seed={FS_UUID},root_owner=0:0,lazy_itable_init=0,lazy_journal_init=0"));
    if let Some(tree) = tree {
        command.arg("-d").arg(tree);
    }
    command.arg(image).arg(format!("{}k", size / 1024));
    tool::run(&mut command)?;
    Ok(image.to_owned())
}

/// Copies `from` into `to` at `offset`, leaving holes where a block is all zero.
fn copy_sparse(from: &Path, to: &Path, offset: u64) -> io::Result<()> {
    let source = File::open(from)?;
    let mut target = OpenOptions::new().write(true).open(to)?;
    let mut block = vec![0; 256 << 10];
    let mut at = 0;
    loop {
        let n = source.read_at(&mut block, at)?;
        if n == 0 {
            return target.flush();
        }
        if block[..n].iter().any(|byte| *byte != 0) {
            target.seek(SeekFrom::Start(offset + at))?;
            target.write_all(&block[..n])?;
        }
        at += n as u64;
    }
}

/// A partition found on a disk image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// GPT partition name.
    pub name: String,
    /// Its own identifier.
    pub guid: Uuid,
    /// First byte.
    pub start: u64,
    /// Length in bytes.
    pub len: u64,
}

/// Reads the GPT of a disk image; both headers must be valid.
///
/// # Errors
/// When there is no valid GPT in sectors of that size.
pub fn read(image: &Path, sector: Sector) -> Result<Vec<Found>> {
    let disk = gpt::GptConfig::new()
        .writable(false)
        .only_valid_headers(true)
        .logical_block_size(sector.block_size())
        .open(image)
        .with_context(|| format!("read the partition table of {}", image.display()))?;
    let mut found = Vec::new();
    for part in disk.partitions().values() {
        found.push(Found {
            name: part.name.clone(),
            guid: part.part_guid,
            start: part.first_lba * sector.bytes(),
            len: (part.last_lba + 1 - part.first_lba) * sector.bytes(),
        });
    }
    found.sort_by_key(|part| part.start);
    Ok(found)
}

/// A file inside an ext4 partition of a disk image: its mode, owner and bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlantedFile {
    /// Permission bits.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Content.
    pub bytes: Vec<u8>,
}

/// Reads one file out of the ext4 file system at `part` of `image`, through debugfs: nothing is mounted, so
/// no journal is replayed and nothing is changed.
///
/// # Errors
/// When the file is not there.
pub fn planted(image: &Path, part: &Found, path: &str) -> Result<PlantedFile> {
    let file_system = format!("{}?offset={}", image.display(), part.start);
    let debugfs = |request: String| {
        let mut command = Command::new("debugfs");
        command.arg("-R").arg(request).arg(&file_system).stderr(Stdio::null());
        command
    };
    let stat = tool::stdout(&mut debugfs(format!("stat {path}")))?;
    let number = |key: &str, radix| -> Result<u32> {
        let rest = stat.split_once(key).with_context(|| format!("no {path} in partition {}", part.name))?.1;
        let word = rest.split_whitespace().next().unwrap_or_default();
        u32::from_str_radix(word, radix).with_context(|| format!("{key} of {path} is {word:?}"))
    };
    Ok(PlantedFile {
        mode: number("Mode:", 8)? & 0o7777,
        uid: number("User:", 10)?,
        gid: number("Group:", 10)?,
        bytes: tool::bytes(&mut debugfs(format!("cat {path}")))?,
    })
}
