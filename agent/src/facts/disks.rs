//! Disks, as the report lists them, from what discovery found.

use std::fs;
use std::path::Path;

use farrier_shared::contract::options::disk_hints::Transport;
use farrier_shared::contract::report;
use serde::Serialize;

use super::health::Health;
use crate::disk::{Disk, Refusal};

/// Disks with hardware and a medium; removable ones excluded.
pub(super) fn reported(disks: &[Disk]) -> impl Iterator<Item = &Disk> {
    disks.iter().filter(|d| {
        d.size > 0
            && !matches!(
                d.refusal,
                Some(
                    Refusal::Virtual
                        | Refusal::NotADisk
                        | Refusal::PathOf { .. }
                        | Refusal::Removable
                        | Refusal::Empty
                )
            )
    })
}

/// The contract's view.
pub(super) fn disks(disks: &[Disk]) -> Vec<report::Disk> {
    reported(disks)
        .map(|d| report::Disk {
            name: d.path.display().to_string(),
            model: d.identity.model.clone(),
            size_gb: i32::try_from(d.size / 1_000_000_000).unwrap_or(i32::MAX),
            kind: kind(d).to_owned(),
            serial_number: d.identity.serial.clone(),
        })
        .collect()
}

fn kind(disk: &Disk) -> &'static str {
    if disk.name.starts_with("nvme") {
        "NVMe"
    } else if disk.rotational {
        "HDD"
    } else {
        "SSD"
    }
}

/// What the contract has no field for: exact size, sector sizes, lasting names, health, what rules a disk out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Detail {
    name: String,
    size_bytes: u64,
    logical_sector_bytes: u32,
    physical_sector_bytes: Option<u32>,
    vendor: String,
    wwid: String,
    transport: Option<&'static str>,
    hctl: Option<String>,
    rotational: bool,
    other_paths: Vec<String>,
    links: Vec<String>,
    refusal: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    health: Option<Health>,
}

impl Detail {
    /// What a person should know before trusting the disk.
    pub(super) fn warning(&self) -> Option<String> {
        let critical = &self.health.as_ref()?.critical;
        (!critical.is_empty()).then(|| format!("{} warns: {}", self.name, critical.join(", ")))
    }
}

/// The details of each disk the report lists; `health` asks one.
pub(super) fn details(disks: &[Disk], root: &Path, health: impl Fn(&Disk) -> Option<Health>) -> Vec<Detail> {
    reported(disks)
        .map(|d| Detail {
            name: d.path.display().to_string(),
            size_bytes: d.size,
            logical_sector_bytes: d.logical_sector,
            physical_sector_bytes: physical_sector(root, &d.name),
            vendor: d.identity.vendor.clone(),
            wwid: d.identity.wwid.clone(),
            transport: d.attachment.transport.map(Transport::as_str),
            hctl: d.attachment.hctl.map(|[h, c, t, l]| format!("{h}:{c}:{t}:{l}")),
            rotational: d.rotational,
            other_paths: d.other_paths.clone(),
            links: d.identity.links.clone(),
            refusal: d.refusal.as_ref().map(ToString::to_string),
            health: health(d),
        })
        .collect()
}

fn physical_sector(root: &Path, name: &str) -> Option<u32> {
    let file = root.join("sys/block").join(name).join("queue/physical_block_size");
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::{Attachment, Identity};

    fn disk(name: &str, size: u64, rotational: bool, refusal: Option<Refusal>) -> Disk {
        Disk {
            name: name.into(),
            path: format!("/dev/{name}").into(),
            size,
            logical_sector: 512,
            dev: (8, 0),
            rotational,
            identity: Identity { model: "M".into(), serial: "S".into(), ..Identity::default() },
            attachment: Attachment::default(),
            other_paths: Vec::new(),
            refusal,
        }
    }

    #[test]
    fn sizes_round_down_to_decimal_gigabytes() {
        let all = [
            disk("sda", 1_999_999_999, true, None),
            disk("sdb", 960_197_124_096, false, Some(Refusal::ReadOnly)),
            disk("nvme0n1", 1 << 34, false, None),
        ];
        let found: Vec<_> = disks(&all).into_iter().map(|d| (d.name, d.size_gb, d.kind)).collect();
        assert_eq!(
            found,
            [
                ("/dev/sda".into(), 1, "HDD".into()),
                ("/dev/sdb".into(), 960, "SSD".into()),
                ("/dev/nvme0n1".into(), 17, "NVMe".into())
            ]
        );
    }

    #[test]
    fn what_is_no_disk_of_the_machine_is_not_listed() {
        let all = [
            disk("loop0", 1 << 30, false, Some(Refusal::Virtual)),
            disk("nvme0c0n1", 1 << 40, false, Some(Refusal::NotADisk)),
            disk("sdc", 1 << 30, true, Some(Refusal::Removable)),
            disk("sdd", 0, true, Some(Refusal::Empty)),
        ];
        assert!(disks(&all).is_empty());
        assert_eq!(details(&all, Path::new("/nonesuch"), |_| None), []);
    }

    #[test]
    fn a_disk_that_warns_is_warned_of() {
        let root = tempfile::tempdir().unwrap();
        let queue = root.path().join("sys/block/nvme0n1/queue");
        fs::create_dir_all(&queue).unwrap();
        fs::write(queue.join("physical_block_size"), "4096\n").unwrap();
        let health = |critical: &[&'static str]| Health { critical: critical.to_vec(), log: None };
        let disks = [disk("nvme0n1", 1 << 34, false, None)];
        let ill = details(&disks, root.path(), |_| Some(health(&["reliability is degraded"])));
        assert_eq!(ill[0].physical_sector_bytes, Some(4096));
        assert_eq!(ill[0].warning().as_deref(), Some("/dev/nvme0n1 warns: reliability is degraded"));
        assert_eq!(details(&disks, root.path(), |_| Some(health(&[])))[0].warning(), None);
        assert_eq!(details(&disks, root.path(), |_| None)[0].warning(), None);
    }
}
