//! Every block device of the machine, as sysfs shows it, with what rules it out as a target.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::{Attachment, DiskError, Identity};
use super::{in_use, multipath, vpd};

/// Unit of `size` in sysfs, whatever the sector size of the disk.
pub(super) const SYSFS_SECTOR: u64 = 512;

/// Where the kernel's views are: `/sys`, `/dev`, `/proc` on a machine, fixtures in tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Roots {
    /// sysfs.
    pub sys: PathBuf,
    /// devtmpfs.
    pub dev: PathBuf,
    /// procfs.
    pub proc: PathBuf,
}

impl Default for Roots {
    fn default() -> Self {
        Self { sys: "/sys".into(), dev: "/dev".into(), proc: "/proc".into() }
    }
}

impl Roots {
    /// The sysfs directory of one whole disk.
    pub(super) fn block(&self, name: &str) -> PathBuf {
        self.sys.join("block").join(name)
    }
}

/// What rules a device out as a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// No hardware behind it: loop, ram, device mapper, md.
    Virtual,
    /// A path node the kernel joins into a disk, or a boot area of a card: not a disk by itself.
    NotADisk,
    /// Another way to a disk that is listed under this name.
    PathOf {
        /// Kernel name of the way that is taken.
        disk: String,
    },
    /// A removable medium.
    Removable,
    /// Not writable.
    ReadOnly,
    /// No medium.
    Empty,
    /// The running system lies on it.
    InUse {
        /// What of it.
        by: String,
    },
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Virtual => f.write_str("virtual"),
            Self::NotADisk => f.write_str("only a part or a path of a disk"),
            Self::PathOf { disk } => write!(f, "another path to {disk}"),
            Self::Removable => f.write_str("removable"),
            Self::ReadOnly => f.write_str("read-only"),
            Self::Empty => f.write_str("without a medium"),
            Self::InUse { by } => write!(f, "in use by {by}"),
        }
    }
}

/// One whole block device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disk {
    /// Kernel name, such as `nvme0n1`.
    pub name: String,
    /// Device path, such as `/dev/nvme0n1`.
    pub path: PathBuf,
    /// Size in bytes.
    pub size: u64,
    /// Logical sector size in bytes.
    pub logical_sector: u32,
    /// Device number: major, minor.
    pub dev: (u64, u64),
    /// Spinning.
    pub rotational: bool,
    /// What stays the same when names move.
    pub identity: Identity,
    /// Where it hangs.
    pub attachment: Attachment,
    /// Kernel names of further paths to it.
    pub other_paths: Vec<String>,
    /// What rules it out as a target; [`None`] for an eligible disk.
    pub refusal: Option<Refusal>,
}

/// Every whole block device, virtual ones included, in order of name.
///
/// # Errors
/// When `/sys/block` cannot be listed. A device whose attributes cannot be read counts as empty.
pub fn discover(roots: &Roots) -> Result<Vec<Disk>, DiskError> {
    let dir = roots.sys.join("block");
    let list = |source| DiskError::List { path: dir.display().to_string(), source };
    let mut names = fs::read_dir(&dir)
        .map_err(list)?
        .map(|entry| entry.map(|e| e.file_name().to_string_lossy().into_owned()))
        .collect::<Result<Vec<_>, io::Error>>()
        .map_err(list)?;
    names.sort();
    let used = in_use::used_disks(roots, &names);
    let mut disks: Vec<Disk> = names.into_iter().map(|name| describe(roots, name, &used)).collect();
    multipath::join_paths(&mut disks, roots);
    Ok(disks)
}

fn describe(roots: &Roots, name: String, used: &in_use::Used) -> Disk {
    let block = roots.block(&name);
    let flag = |file: &str| attribute(&block, file).is_some_and(|v| v == "1");
    let size = number(&block, "size").unwrap_or(0).saturating_mul(SYSFS_SECTOR);
    let refusal = if !block.join("device").exists() {
        Some(Refusal::Virtual)
    } else if flag("hidden") || is_part_of_a_disk(&name) {
        Some(Refusal::NotADisk)
    } else if flag("removable") {
        Some(Refusal::Removable)
    } else if flag("ro") {
        Some(Refusal::ReadOnly)
    } else if size == 0 {
        Some(Refusal::Empty)
    } else {
        used.get(&name).map(|by| Refusal::InUse { by: by.clone() })
    };
    let real = fs::canonicalize(&block).unwrap_or_default();
    let is_ata = vpd::Pages::read(&block.join("device")).ata().is_some();
    Disk {
        attachment: Attachment::of(&name, &real, is_ata),
        other_paths: Vec::new(),
        path: roots.dev.join(name.replace('!', "/")),
        size,
        logical_sector: number(&block, "queue/logical_block_size")
            .and_then(|n| u32::try_from(n).ok())
            .unwrap_or(512),
        dev: device_number(&block).unwrap_or_default(),
        rotational: flag("queue/rotational"),
        identity: Identity::read(roots, &name),
        refusal,
        name,
    }
}

/// NVMe path nodes (`nvme0c1n1`) lead to a disk listed by itself; boot areas (`mmcblk0boot0`) are not for systems.
fn is_part_of_a_disk(name: &str) -> bool {
    let after = |prefix: &str| {
        name.strip_prefix(prefix)
            .map(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit()))
            .filter(|rest| *rest != name)
    };
    after("nvme").is_some_and(|rest| rest.starts_with('c'))
        || after("mmcblk").is_some_and(|rest| rest.starts_with("boot") || rest.starts_with("rpmb"))
}

/// A sysfs attribute without surrounding white space; [`None`] when absent, unreadable or empty.
pub(super) fn attribute(dir: &Path, file: &str) -> Option<String> {
    let bytes = fs::read(dir.join(file)).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
    (!text.is_empty()).then(|| text.to_owned())
}

pub(super) fn number(dir: &Path, file: &str) -> Option<u64> {
    attribute(dir, file)?.parse().ok()
}

/// The `dev` attribute: major and minor.
pub(super) fn device_number(dir: &Path) -> Option<(u64, u64)> {
    let text = attribute(dir, "dev")?;
    let (major, minor) = text.split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
