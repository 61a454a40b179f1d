//! One logical disk per world-wide name: a disk with several paths shows as several block devices.
//!
//! The kernel joins the paths of NVMe disks by itself. Those of SAS, Fibre Channel and iSCSI disks would be joined by
//! multipath tools, which this image has not; they are told apart here, and one path is written through.

use std::collections::BTreeMap;
use std::path::Path;

use farrier_shared::contract::options::disk_hints::Transport;

use super::discover::attribute;
use super::{Disk, Refusal, Roots};

/// Marks every path but the best of each disk as [`Refusal::PathOf`], and lists them in that one.
pub(super) fn join_paths(disks: &mut [Disk], roots: &Roots) {
    let mut by_name: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (at, disk) in disks.iter().enumerate() {
        let several = matches!(
            disk.attachment.transport,
            Some(Transport::Sas | Transport::Scsi | Transport::Fc | Transport::Iscsi)
        );
        let is_path = several && disk.size > 0 && !matches!(disk.refusal, Some(Refusal::Virtual));
        if let Some(id) = is_path.then(|| unique_name(&disk.identity.wwid)).flatten() {
            by_name.entry(id).or_default().push(at);
        }
    }
    for (id, members) in by_name.into_iter().filter(|(_, members)| members.len() > 1) {
        join(disks, &id, &members, roots);
    }
}

fn join(disks: &mut [Disk], id: &str, members: &[usize], roots: &Roots) {
    let names = || members.iter().map(|at| disks[*at].name.as_str()).collect::<Vec<_>>().join(", ");
    let first = &disks[members[0]];
    let same = |other: &Disk| {
        let (a, b) = (&first.identity, &other.identity);
        (first.size, first.logical_sector, &a.model, &a.vendor, &a.serial)
            == (other.size, other.logical_sector, &b.model, &b.vendor, &b.serial)
    };
    if !members.iter().all(|at| same(&disks[*at])) {
        tracing::warn!(id, disks = names(), "different disks share one world-wide name; it is not relied on");
        return;
    }
    let in_use = members.iter().find_map(|at| match &disks[*at].refusal {
        Some(Refusal::InUse { by }) => Some(by.clone()),
        _ => None,
    });
    if let Some(by) = in_use {
        for at in members {
            disks[*at].refusal = Some(Refusal::InUse { by: by.clone() });
        }
        return;
    }
    let usable = members.iter().copied().filter(|at| disks[*at].refusal.is_none());
    let Some(best) = usable.min_by_key(|at| (rank(&roots.block(&disks[*at].name).join("device")), *at))
    else {
        return;
    };
    tracing::info!(id, disks = names(), through = disks[best].name, "several paths lead to one disk");
    let through = disks[best].name.clone();
    for at in members.iter().copied().filter(|at| *at != best) {
        let name = disks[at].name.clone();
        disks[best].other_paths.push(name);
        disks[at].refusal = Some(Refusal::PathOf { disk: through.clone() });
    }
}

/// How good a path is, the least the best: SCSI state, then asymmetric access (SPC-4, target port groups).
fn rank(device: &Path) -> u8 {
    if attribute(device, "state").is_some_and(|state| state != "running") {
        return 3;
    }
    match attribute(device, "access_state").as_deref() {
        None | Some("active/optimized") => 0,
        Some("active/non-optimized") => 1,
        Some(_) => 2,
    }
}

/// Runs of digits that makers leave in when they assign no names.
const FAKES: [&str; 3] = ["0123456789", "123456789abcde", "fedcba98765"];

/// The digits of a world-wide name that can be trusted to be one; [`None`] for names made of a serial number, and for
/// those that hardware carries which was never given one: zeros, all F, counted digits.
fn unique_name(wwid: &str) -> Option<String> {
    let digits = wwid.strip_prefix("naa.").or_else(|| wwid.strip_prefix("eui."))?.to_ascii_lowercase();
    if digits.len() < 16 || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    let mut distinct: Vec<u8> = digits.bytes().collect();
    distinct.sort_unstable();
    distinct.dedup();
    // Sixteen random digits have fewer than four distinct ones once in 10^9: only a hand makes such a name.
    let made_up = distinct.len() < 4 || FAKES.iter().any(|fake| digits.contains(fake));
    (!made_up).then_some(digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_nobody_assigned_are_no_names() {
        for wwid in ["naa.5000c50015ea71aa", "naa.600140512345678abcd0ef0123456780", "eui.0025388b71b4a1c2"] {
            assert!(unique_name(wwid).is_some(), "{wwid}");
        }
        for wwid in [
            "",
            "naa.",
            "naa.5000c500",
            "naa.0000000000000000",
            "naa.5000000000000000",
            "naa.5000000000000001",
            "naa.ffffffffffffffff",
            "naa.FFFFFFFFFFFFFFFF",
            "eui.0123456789abcdef",
            "naa.50123456789abcde",
            "naa.not-hexadecimal!",
            "t10.ATA     SOME MODEL          SERIAL",
            "nvme.1b36-31-51454d55-00000001",
        ] {
            assert_eq!(unique_name(wwid), None, "{wwid}");
        }
    }
}
