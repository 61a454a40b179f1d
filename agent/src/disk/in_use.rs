//! Which disks the running system stands on: mounts and swap, down through device mapper and md to the disks.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use super::Roots;
use super::discover::{attribute, device_number};

/// Kernel name of a disk, and what of the system lies on it.
pub(super) type Used = BTreeMap<String, String>;

/// A mount or swap area: its device number or path, and what to call it.
#[derive(Debug, PartialEq, Eq)]
struct Area {
    dev: Option<(u64, u64)>,
    source: String,
    what: String,
}

/// The disks under every mount and swap area. What cannot be read counts as not there: the exclusive open of
/// the target is the guard that the kernel itself keeps.
pub(super) fn used_disks(roots: &Roots, names: &[String]) -> Used {
    let read = |file: &str| fs::read_to_string(roots.proc.join(file)).unwrap_or_default();
    let mut areas = mounts(&read("self/mountinfo"));
    areas.extend(swaps(&read("swaps")));
    let mut used = Used::new();
    for area in areas {
        let Some(name) = names.iter().find_map(|disk| holder(roots, disk, &area)) else { continue };
        let mut seen = BTreeSet::new();
        descend(roots, names, &name, &area.what, &mut seen, &mut used);
    }
    used
}

/// Lines such as `36 35 98:1 / /mnt rw - ext4 /dev/sda1 rw`.
fn mounts(mountinfo: &str) -> Vec<Area> {
    mountinfo
        .lines()
        .filter_map(|line| {
            let (head, tail) = line.split_once(" - ")?;
            let mut head = head.split(' ').skip(2);
            let dev = head.next()?.split_once(':')?;
            let point = head.nth(1)?;
            let source = tail.split(' ').nth(1)?;
            let dev = dev.0.parse().ok().zip(dev.1.parse().ok());
            Some(Area { dev, source: source.to_owned(), what: format!("the mount {point}") })
        })
        .collect()
}

/// Lines such as `/dev/sda2 partition 1048572 0 -2`, after a heading.
fn swaps(swaps: &str) -> Vec<Area> {
    swaps
        .lines()
        .skip(1)
        .filter_map(|line| line.split_ascii_whitespace().next())
        .map(|source| Area { dev: None, source: source.to_owned(), what: "swap".to_owned() })
        .collect()
}

/// The disk this area lies on directly, when it is `disk` or a partition of it.
fn holder(roots: &Roots, disk: &str, area: &Area) -> Option<String> {
    let block = roots.block(disk);
    let is_area = |dir: &Path, name: &str| {
        let by_number = area.dev.is_some() && device_number(dir) == area.dev;
        let path = fs::canonicalize(&area.source).unwrap_or_else(|_| area.source.clone().into());
        let by_name = path.file_name().is_some_and(|f| f == name) && area.source.starts_with('/');
        let mapped = area.source.strip_prefix("/dev/mapper/");
        by_number || by_name || (mapped.is_some() && attribute(dir, "dm/name").as_deref() == mapped)
    };
    let hit = is_area(&block, disk)
        || partitions_of(&block).iter().any(|partition| is_area(&block.join(partition), partition));
    hit.then(|| disk.to_owned())
}

/// Marks the disk, or the disks below it.
fn descend(
    roots: &Roots,
    names: &[String],
    disk: &str,
    what: &str,
    seen: &mut BTreeSet<String>,
    used: &mut Used,
) {
    // Slaves cannot form a circle in a sane kernel; a fixture or a bug must not hang us.
    if !seen.insert(disk.to_owned()) {
        return;
    }
    used.entry(disk.to_owned()).or_insert_with(|| what.to_owned());
    for slave in entries(&roots.block(disk).join("slaves")) {
        let below = names
            .iter()
            .find(|name| **name == slave || roots.block(name).join(&slave).join("partition").exists());
        if let Some(below) = below {
            descend(roots, names, below, what, seen, used);
        }
    }
}

fn partitions_of(block: &Path) -> Vec<String> {
    entries(block).into_iter().filter(|name| block.join(name).join("partition").exists()).collect()
}

fn entries(dir: &Path) -> Vec<String> {
    let Ok(list) = fs::read_dir(dir) else { return Vec::new() };
    list.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}
