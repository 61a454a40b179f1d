//! The partitions the kernel sees on a disk.

use std::fs;

use super::discover::{SYSFS_SECTOR, attribute, device_number, number};
use super::{DiskError, Roots};

/// One partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// Kernel name, such as `nvme0n1p2`.
    pub name: String,
    /// Its number in the table.
    pub number: u64,
    /// Device number: major, minor.
    pub dev: (u64, u64),
    /// Size in bytes.
    pub size: u64,
    /// Its name in a GPT, if it has one.
    pub label: Option<String>,
}

/// The partitions of this disk alone, in order of number: `p10` after `p2`.
pub(super) fn list(roots: &Roots, disk: &str) -> Result<Vec<Partition>, DiskError> {
    let block = roots.block(disk);
    let list = |source| DiskError::List { path: block.display().to_string(), source };
    let mut partitions = Vec::new();
    for entry in fs::read_dir(&block).map_err(list)? {
        let dir = entry.map_err(list)?.path();
        let (Some(number), Some(dev)) = (number(&dir, "partition"), device_number(&dir)) else { continue };
        partitions.push(Partition {
            name: dir.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default(),
            number,
            dev,
            size: self::number(&dir, "size").unwrap_or(0).saturating_mul(SYSFS_SECTOR),
            label: attribute(&dir, "uevent").and_then(|text| {
                text.lines().find_map(|line| line.strip_prefix("PARTNAME=").map(str::to_owned))
            }),
        });
    }
    partitions.sort_by_key(|partition| partition.number);
    Ok(partitions)
}
