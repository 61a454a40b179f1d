//! How a disk says it does: an NVMe disk in its SMART / Health Information log (NVM Express Base Specification, log
//! page 02h), an ATA disk by whether it expects to fail.

use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::time::{Duration, Instant};

use farrier_shared::contract::options::disk_hints::Transport;
use serde::Serialize;

use super::ata::{self, Verdict};
use crate::disk::Disk;
use crate::sys::{nvme, scsi};

/// How long an ATA disk may take to answer. A disk that takes longer has its link reset by the kernel.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long all disks together may take to answer: after that no further one is asked.
const ALL: Duration = Duration::from_secs(15);

/// What a disk says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Health {
    /// What is critical, in words; empty on a healthy disk.
    pub(super) critical: Vec<&'static str>,
    /// What an NVMe disk says beyond that.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub(super) log: Option<Log>,
}

/// What an NVMe disk's log says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Log {
    /// Degrees Celsius.
    pub(super) temperature_celsius: i32,
    /// Of the spare capacity, in percent.
    pub(super) available_spare_percent: u8,
    /// Of the endurance, in percent; may exceed 100.
    pub(super) percentage_used: u8,
    /// Hours.
    pub(super) power_on_hours: u64,
    /// Losses of power without notice.
    pub(super) unsafe_shutdowns: u64,
    /// Unrecovered errors of data integrity.
    pub(super) media_errors: u64,
}

/// How a disk is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Nvme,
    Ata,
}

/// Only who certainly understands the question is asked: bridges to USB and volumes of RAID adapters have been known to
/// hang on commands they do not expect.
fn way(disk: &Disk) -> Option<Way> {
    match disk.attachment.transport? {
        Transport::Nvme => Some(Way::Nvme),
        Transport::Sata => Some(Way::Ata),
        _ => None,
    }
}

/// Asks disks, for a bounded time in all.
#[derive(Debug)]
pub(super) struct Asking {
    until: Instant,
}

impl Asking {
    /// Begins now.
    pub(super) fn begin() -> Self {
        Self { until: Instant::now() + ALL }
    }

    /// Asks one disk; [`None`] when it is of no kind that can be asked, does not answer, or time is up.
    pub(super) fn ask(&self, disk: &Disk) -> Option<Health> {
        let way = way(disk)?;
        if Instant::now() >= self.until {
            tracing::info!(disk = %disk.path.display(), "not asked for its health: other disks took too long");
            return None;
        }
        let said = match way {
            Way::Nvme => open(disk).and_then(nvme::health_log).map(|log| Some(read(&log))),
            Way::Ata => open(disk)
                .and_then(|file| scsi::command_without_data(file, ata::return_status(), PATIENCE))
                .map(|sense| ata::verdict(&sense).map(judged)),
        };
        said.unwrap_or_else(|error| {
            tracing::debug!(disk = %disk.path.display(), %error, "does not tell its health");
            None
        })
    }
}

fn open(disk: &Disk) -> io::Result<File> {
    let flags = nix::libc::O_CLOEXEC | nix::libc::O_NONBLOCK;
    File::options().read(true).custom_flags(flags).open(&disk.path)
}

fn judged(verdict: Verdict) -> Health {
    let critical = match verdict {
        Verdict::Good => vec![],
        Verdict::Failing => vec!["it expects to fail soon"],
    };
    Health { critical, log: None }
}

fn read(log: &[u8; nvme::HEALTH_LOG]) -> Health {
    // Counters have 128 bits, of which the lower half lasts for longer than any disk.
    let counter = |at: usize| u64::from_le_bytes(std::array::from_fn(|n| log[at + n]));
    let warnings = [
        "spare capacity is low",
        "temperature is out of range",
        "reliability is degraded",
        "the medium is read-only",
        "the backup of volatile memory has failed",
        "persistent memory is unreliable",
    ];
    Health {
        critical: (0..).zip(warnings).filter(|(bit, _)| log[0] >> bit & 1 == 1).map(|(_, w)| w).collect(),
        log: Some(Log {
            // In kelvins.
            temperature_celsius: i32::from(u16::from_le_bytes([log[1], log[2]])) - 273,
            available_spare_percent: log[3],
            percentage_used: log[5],
            power_on_hours: counter(128),
            unsafe_shutdowns: counter(144),
            media_errors: counter(160),
        }),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::disk::{Attachment, Identity};

    #[test]
    fn the_log_is_read_in_its_units() {
        let mut log = [0; nvme::HEALTH_LOG];
        log[..6].copy_from_slice(&[0b0000_0101, 0x2d, 0x01, 9, 10, 101]);
        log[128..130].copy_from_slice(&[0x10, 0x27]);
        log[144] = 3;
        log[160] = 7;
        let expected = Health {
            critical: vec!["spare capacity is low", "reliability is degraded"],
            log: Some(Log {
                temperature_celsius: 28,
                available_spare_percent: 9,
                percentage_used: 101,
                power_on_hours: 10_000,
                unsafe_shutdowns: 3,
                media_errors: 7,
            }),
        };
        assert_eq!(read(&log), expected);
    }

    #[test]
    fn both_kinds_of_disk_are_told_under_the_same_keys() {
        let mut log = [0; nvme::HEALTH_LOG];
        log[1..6].copy_from_slice(&[0x2d, 0x01, 100, 10, 1]);
        assert_eq!(
            serde_json::to_value(read(&log)).unwrap(),
            json!({
                "critical": [], "temperatureCelsius": 28, "availableSparePercent": 100, "percentageUsed": 1,
                "powerOnHours": 0, "unsafeShutdowns": 0, "mediaErrors": 0,
            })
        );
        assert_eq!(serde_json::to_value(judged(Verdict::Good)).unwrap(), json!({"critical": []}));
        let failing = json!({"critical": ["it expects to fail soon"]});
        assert_eq!(serde_json::to_value(judged(Verdict::Failing)).unwrap(), failing);
    }

    fn disk(transport: Option<Transport>) -> Disk {
        Disk {
            name: "sda".into(),
            path: "/nonesuch".into(),
            size: 1 << 40,
            logical_sector: 512,
            dev: (8, 0),
            rotational: true,
            identity: Identity::default(),
            attachment: Attachment { transport, hctl: None },
            other_paths: Vec::new(),
            refusal: None,
        }
    }

    #[test]
    fn only_disks_that_say_what_they_are_are_asked() {
        use Transport::*;
        assert_eq!(way(&disk(Some(Nvme))), Some(Way::Nvme));
        assert_eq!(way(&disk(Some(Sata))), Some(Way::Ata));
        for silent in [Some(Usb), Some(Scsi), Some(Sas), Some(Virtio), Some(Mmc), Some(Fc), Some(Iscsi), None]
        {
            assert_eq!(way(&disk(silent)), None, "{silent:?}");
        }
    }

    #[test]
    fn a_disk_that_cannot_be_asked_says_nothing() {
        assert_eq!(Asking::begin().ask(&disk(Some(Transport::Sata))), None);
        assert_eq!(Asking { until: Instant::now() }.ask(&disk(Some(Transport::Sata))), None);
    }
}
