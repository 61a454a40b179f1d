//! How a disk is attached: its transport, and its address on a SCSI host.

use std::path::Path;

use farrier_shared::contract::options::disk_hints::Transport;

/// Where a disk hangs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attachment {
    /// The protocol the disk itself speaks; [`None`] when sysfs does not tell.
    pub transport: Option<Transport>,
    /// Host, channel, target, logical unit.
    pub hctl: Option<[u64; 4]>,
}

impl Attachment {
    /// Of the disk of this kernel name at this real path under `/sys/devices`; `ata` when it answers as an ATA disk.
    pub(super) fn of(name: &str, real: &Path, ata: bool) -> Self {
        let parts: Vec<&str> = real.iter().filter_map(|part| part.to_str()).collect();
        let numbered = |prefix: &str| {
            parts.iter().any(|part| {
                let rest = part.strip_prefix(prefix);
                rest.is_some_and(|r| r.starts_with(|c: char| c.is_ascii_digit()))
            })
        };
        let hctl = match parts[..] {
            [.., address, "block", _] => parse_hctl(address),
            _ => None,
        };
        let transport = if name.starts_with("nvme") {
            Some(Transport::Nvme)
        } else if name.starts_with("mmcblk") {
            Some(Transport::Mmc)
        } else if numbered("usb") {
            // Before the rest: a SATA disk in a USB case says that it is one.
            Some(Transport::Usb)
        } else if name.starts_with("pmem") {
            Some(Transport::Pmem)
        } else if numbered("rport-") {
            // Before the rest as well: an array may pass on what its own SATA disks say.
            Some(Transport::Fc)
        } else if numbered("session") {
            Some(Transport::Iscsi)
        } else if ata || numbered("ata") {
            Some(Transport::Sata)
        } else if numbered("end_device-") {
            Some(Transport::Sas)
        } else if hctl.is_some() {
            Some(Transport::Scsi)
        } else if numbered("virtio") {
            Some(Transport::Virtio)
        } else {
            None
        };
        Self { transport, hctl }
    }
}

fn parse_hctl(text: &str) -> Option<[u64; 4]> {
    let numbers: Vec<u64> = text.split(':').map(|n| n.parse().ok()).collect::<Option<_>>()?;
    numbers.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_in_sysfs_tells_the_transport() {
        use Transport::*;
        let pci = "/sys/devices/pci0000:00/0000:00:1f.2";
        for (name, below, ata, transport, hctl) in [
            ("nvme0n1", "nvme/nvme0/nvme0n1", false, Some(Nvme), None),
            ("mmcblk0", "mmc_host/mmc0/mmc0:0001/block/mmcblk0", false, Some(Mmc), None),
            ("vda", "virtio3/block/vda", false, Some(Virtio), None),
            ("sda", "ata3/host2/target2:0:0/2:0:0:0/block/sda", false, Some(Sata), Some([2, 0, 0, 0])),
            ("sda", "virtio3/host2/target2:0:1/2:0:1:7/block/sda", false, Some(Scsi), Some([2, 0, 1, 7])),
            ("sda", "host0/target0:2:4/0:2:4:0/block/sda", false, Some(Scsi), Some([0, 2, 4, 0])),
            (
                "sda",
                "host0/port-0:1/end_device-0:1/target0:0:1/0:0:1:0/block/sda",
                false,
                Some(Sas),
                Some([0, 0, 1, 0]),
            ),
            (
                "sda",
                "host0/port-0:1/end_device-0:1/target0:0:1/0:0:1:0/block/sda",
                true,
                Some(Sata),
                Some([0, 0, 1, 0]),
            ),
            ("sda", "host1/rport-1:0-2/target1:0:0/1:0:0:5/block/sda", false, Some(Fc), Some([1, 0, 0, 5])),
            ("sda", "host9/session1/target9:0:0/9:0:0:1/block/sda", false, Some(Iscsi), Some([9, 0, 0, 1])),
            (
                "sda",
                "usb2/2-1/2-1:1.0/host6/target6:0:0/6:0:0:0/block/sda",
                true,
                Some(Usb),
                Some([6, 0, 0, 0]),
            ),
            ("sdb", "host1/rport-1:0-2/target1:0:0/1:0:0:6/block/sdb", true, Some(Fc), Some([1, 0, 0, 6])),
            ("pmem0", "ndbus0/region0/namespace0.0/block/pmem0", false, Some(Pmem), None),
            ("xvda", "vbd-51712/block/xvda", false, None, None),
        ] {
            let real = format!("{pci}/{below}");
            let found = Attachment::of(name, Path::new(&real), ata);
            assert_eq!(found, Attachment { transport, hctl }, "{below}");
        }
    }
}
