//! Disks, as the report lists them, from what discovery found.

use farrier_shared::contract::options::disk_hints::Transport;
use farrier_shared::contract::report;
use serde_json::{Value, json};

use crate::disk::{Disk, Refusal};

/// Disks with hardware and a medium; removable ones excluded.
fn reported(disks: &[Disk]) -> impl Iterator<Item = &Disk> {
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

/// What the contract has no field for: exact size, sector size, lasting names, what rules a disk out.
pub(super) fn details(disks: &[Disk]) -> Value {
    reported(disks)
        .map(|d| {
            json!({
                "name": d.path.display().to_string(),
                "sizeBytes": d.size,
                "logicalSectorBytes": d.logical_sector,
                "vendor": d.identity.vendor,
                "wwid": d.identity.wwid,
                "transport": d.attachment.transport.map(Transport::as_str),
                "hctl": d.attachment.hctl.map(|[h, c, t, l]| format!("{h}:{c}:{t}:{l}")),
                "rotational": d.rotational,
                "otherPaths": d.other_paths,
                "links": d.identity.links,
                "refusal": d.refusal.as_ref().map(ToString::to_string),
            })
        })
        .collect()
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
        assert_eq!(details(&all), json!([]));
    }
}
