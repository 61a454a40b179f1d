//! Making disk images out of file systems, and reading file systems out of disk images, without loop devices.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result};

use crate::tool;

/// One mebibyte, in bytes.
pub const MIB: u64 = 1 << 20;
/// Partition type of an EFI system partition.
pub const ESP: &str = "C12A7328-F81F-11D2-BA4B-00A0C93EC93B";
/// Partition type of Linux data.
pub const LINUX: &str = "0FC63DAF-8483-4772-8E79-3D69D8477DE4";

/// Everything made twice from one input shall be the same bytes.
const DISK_GUID: &str = "FA221E12-0000-4000-8000-000000000000";
const FS_UUID: &str = "fa221e12-0000-4000-8000-0000000000ff";

/// One partition of an image to be made.
#[derive(Clone, Debug)]
pub struct Partition {
    /// GPT partition name.
    pub name: &'static str,
    /// GPT partition type.
    pub kind: &'static str,
    /// File whose bytes fill the partition; its length is the partition's.
    pub content: PathBuf,
}

/// A disk image to be made: a GPT and its partitions, in order, on 1 MiB boundaries.
#[derive(Clone, Debug)]
pub struct Layout {
    /// The partitions.
    pub parts: Vec<Partition>,
}

impl Layout {
    /// Writes the image to `out`: just long enough, zero wherever no partition has data.
    ///
    /// # Errors
    /// When a content cannot be read or sfdisk refuses the table.
    pub fn write(&self, out: &Path) -> Result<()> {
        let mut script = format!("label: gpt\nlabel-id: {DISK_GUID}\n");
        let mut start = MIB;
        let mut placed = Vec::new();
        for (index, part) in self.parts.iter().enumerate() {
            let size = fs::metadata(&part.content)
                .with_context(|| format!("find {}", part.content.display()))?
                .len()
                .next_multiple_of(MIB);
            let guid = format!("FA221E12-0000-4000-8000-{:012X}", index + 1);
            script.push_str(&format!(
                "start={}, size={}, type={}, uuid={guid}, name={}\n",
                start / 512,
                size / 512,
                part.kind,
                part.name
            ));
            placed.push((part, start));
            start += size;
        }
        let file = File::create(out).with_context(|| format!("create {}", out.display()))?;
        file.set_len(start + MIB).context("size the image")?;
        tool::with_input(Command::new("sfdisk").args(["--quiet", "--no-reread"]).arg(out), &script)?;
        for (part, start) in placed {
            copy_sparse(&part.content, out, start)
                .with_context(|| format!("copy partition {} into {}", part.name, out.display()))?;
        }
        Ok(())
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
    /// First byte.
    pub start: u64,
    /// Length in bytes.
    pub len: u64,
}

/// Reads the GPT of a disk image with 512-byte sectors; both headers must be valid.
///
/// # Errors
/// When there is no valid GPT.
pub fn read(image: &Path) -> Result<Vec<Found>> {
    let disk = gpt::GptConfig::new()
        .writable(false)
        .only_valid_headers(true)
        .logical_block_size(gpt::disk::LogicalBlockSize::Lb512)
        .open(image)
        .with_context(|| format!("read the partition table of {}", image.display()))?;
    let mut found = Vec::new();
    for part in disk.partitions().values() {
        found.push(Found {
            name: part.name.clone(),
            start: part.first_lba * 512,
            len: (part.last_lba + 1 - part.first_lba) * 512,
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
