//! discovery
use std::path::PathBuf;
use super::{DiskError, Identity};

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

/// One whole disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disk {
    /// Kernel name, such as `nvme0n1`.
    pub name: String,
    /// Size in bytes.
    pub size: u64,
    /// Logical sector size in bytes.
    pub logical_sector: u32,
    /// Device number.
    pub dev: (u64, u64),
    /// What stays the same when names move.
    pub identity: Identity,
    /// Not writable.
    pub read_only: bool,
    /// Removable medium.
    pub removable: bool,
    /// What of the running system lies on it.
    pub in_use: Option<String>,
}

/// Every whole disk with a device behind it, in order of name.
pub fn discover(roots: &Roots) -> Result<Vec<Disk>, DiskError> { todo!() }
