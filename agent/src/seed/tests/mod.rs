//! Seeds on plain directories, and on a loop device where this machine lets us have one.

mod installing;
mod planting;
mod ways;

use std::fs::{self, File};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use gpt::disk::LogicalBlockSize;
use zeroize::Zeroizing;

use super::Payload;
use crate::disk::{Access, BlockDevice, DiskError, KernelTarget, Partition, Roots, Target, discover};

const MIB: usize = 1 << 20;
const USER_DATA: &[u8] = b"#cloud-config\nkey: \xff\x00 verbatim";

fn payload(user_data: &[u8]) -> Payload {
    let provider_id = "b7://default/node-1".parse().unwrap();
    Payload { user_data: Zeroizing::new(user_data.to_vec()), provider_id }
}

/// A loop device over a file of so many MiB.
struct Loop {
    path: PathBuf,
    name: String,
    sector: u32,
    dir: tempfile::TempDir,
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").arg("-d").arg(&self.path).status();
    }
}

impl Loop {
    /// [`None`], with a word, on a machine that has none for us: loop devices need root and the kernel's driver.
    /// Where CI is set, as continuous integration does, there must be one: a test skipped there is never run.
    fn attach(mebibytes: usize) -> Option<Self> {
        Self::holding(&[], mebibytes, 512)
    }

    /// One that holds these bytes, with sectors of that size.
    fn holding(content: &[u8], mebibytes: usize, sector: u32) -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("disk");
        fs::write(&file, content).unwrap();
        File::options().write(true).open(&file).unwrap().set_len((mebibytes * MIB) as u64).unwrap();
        let size = sector.to_string();
        let output = Command::new("losetup").args(["-P", "-f", "--show", "-b", &size]).arg(&file).output();
        let output = output.ok().filter(|output| output.status.success());
        let Some(output) = output.filter(|_| Command::new("mkfs.ext4").arg("-V").output().is_ok()) else {
            let why = "no loop device or no mkfs.ext4 here: only the parts without one are tested";
            assert!(std::env::var_os("CI").is_none(), "{why}");
            eprintln!("{why}");
            return None;
        };
        let path = PathBuf::from(String::from_utf8(output.stdout).unwrap().trim());
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        Some(Self { path, name, sector, dir })
    }

    fn target(&self) -> Arc<dyn Target> {
        let roots = Roots::default();
        let disk = discover(&roots).unwrap().into_iter().find(|disk| disk.name == self.name).unwrap();
        let (file, kernel) = (self.dir.path().join("disk"), KernelTarget::new(disk, roots));
        Arc::new(Partitioned { file, sector: self.sector, kernel })
    }

    /// What `debugfs`, another implementation, says to a command about the ext file system at a place of the disk.
    fn debugfs(&self, at: u64, len: usize, command: &str) -> Vec<u8> {
        let copy = self.dir.path().join("partition");
        let mut bytes = vec![0; len];
        let mut disk = File::open(self.dir.path().join("disk")).unwrap();
        disk.seek(SeekFrom::Start(at)).unwrap();
        disk.read_exact(&mut bytes).unwrap();
        fs::write(&copy, bytes).unwrap();
        Command::new("debugfs").args(["-R", command]).arg(&copy).output().unwrap().stdout
    }
}

/// A target on a kernel that may be built without a parser for GPT, as those of small virtual machines are: what the
/// parser would have done is then done for it.
struct Partitioned {
    file: PathBuf,
    sector: u32,
    kernel: KernelTarget,
}

impl Target for Partitioned {
    fn name(&self) -> &str {
        self.kernel.name()
    }

    fn open(&self, access: Access) -> Result<Arc<dyn BlockDevice>, DiskError> {
        self.kernel.open(access)
    }

    fn partitions(&self) -> Result<Vec<Partition>, DiskError> {
        let seen = self.kernel.partitions()?;
        let config = gpt::GptConfig::new().only_valid_headers(true).logical_block_size(block(self.sector));
        let table = config.open(&self.file);
        if let (true, Ok(table)) = (seen.is_empty(), table) {
            for (number, partition) in table.partitions() {
                let (start, sectors) = (partition.first_lba, partition.last_lba + 1 - partition.first_lba);
                // In units of 512 bytes, whatever the sectors.
                let unit = u64::from(self.sector / 512);
                let words = [number.to_string(), (start * unit).to_string(), (sectors * unit).to_string()];
                Command::new("addpart").arg(self.kernel.name()).args(words).status().unwrap();
            }
        }
        self.kernel.partitions()
    }
}

fn block(sector: u32) -> LogicalBlockSize {
    if sector == 4096 { LogicalBlockSize::Lb4096 } else { LogicalBlockSize::Lb512 }
}

/// An image with these partitions, whole MiB each, one behind the other from 1 MiB on.
fn disk_image(sector: u32, partitions: &[Vec<u8>]) -> Vec<u8> {
    let size = partitions.iter().map(Vec::len).sum::<usize>() + 2 * MIB;
    let sectors = |bytes: usize| (bytes / sector as usize) as u64;
    let mut image = std::io::Cursor::new(vec![0; size]);
    let last = u32::try_from(sectors(size) - 1).unwrap();
    gpt::mbr::ProtectiveMBR::with_lb_size(last).overwrite_lba0(&mut image).unwrap();
    let config = gpt::GptConfig::new().writable(true).logical_block_size(block(sector));
    let mut disk = config.create_from_device(image, None).unwrap();
    let mut start = MIB;
    for (id, content) in (1..).zip(partitions) {
        let (at, length) = (sectors(start), sectors(content.len()));
        disk.add_partition_at("p", id, at, length, gpt::partition_types::LINUX_FS, 0).unwrap();
        start += content.len();
    }
    let mut image = disk.write().unwrap();
    image.seek(SeekFrom::Start(MIB as u64)).unwrap();
    for content in partitions {
        image.write_all(content).unwrap();
    }
    image.into_inner()
}

/// An ext4 of 8 MiB so labelled, which holds the files of `tree`.
fn ext4(label: &str, tree: &[(&str, &str)]) -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    let (file, root) = (dir.path().join("ext4"), dir.path().join("root"));
    fs::create_dir(&root).unwrap();
    for (path, content) in tree {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    File::create(&file).unwrap().set_len(8 * MIB as u64).unwrap();
    let mut mkfs = Command::new("mkfs.ext4");
    // Blocks as large as the largest sectors, so that it can be mounted from every disk.
    mkfs.args(["-q", "-b", "4096", "-L", label, "-d"]).arg(&root).arg(&file);
    assert!(mkfs.status().unwrap().success());
    fs::read(&file).unwrap()
}
