//! How an NVMe disk says it does: its SMART / Health Information log (NVM Express Base Specification, log page 02h).

use std::fs::File;
use std::os::unix::fs::OpenOptionsExt as _;

use serde::Serialize;

use crate::disk::Disk;
use crate::sys::nvme;

/// What the log says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Health {
    /// What is critical, in words; empty on a healthy disk.
    pub(super) critical: Vec<&'static str>,
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

/// Asks the disk; [`None`] when it is no NVMe disk or does not answer.
pub(super) fn of(disk: &Disk) -> Option<Health> {
    if !disk.name.starts_with("nvme") {
        return None;
    }
    let flags = nix::libc::O_CLOEXEC | nix::libc::O_NONBLOCK;
    let file = File::options().read(true).custom_flags(flags).open(&disk.path).ok()?;
    match nvme::health_log(&file) {
        Ok(log) => Some(read(&log)),
        Err(error) => {
            tracing::debug!(disk = %disk.path.display(), %error, "no health log");
            None
        }
    }
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
        // In kelvins.
        temperature_celsius: i32::from(u16::from_le_bytes([log[1], log[2]])) - 273,
        available_spare_percent: log[3],
        percentage_used: log[5],
        power_on_hours: counter(128),
        unsafe_shutdowns: counter(144),
        media_errors: counter(160),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_is_read_in_its_units() {
        let mut log = [0; nvme::HEALTH_LOG];
        log[..6].copy_from_slice(&[0b0000_0101, 0x2d, 0x01, 9, 10, 101]);
        log[128..130].copy_from_slice(&[0x10, 0x27]);
        log[144] = 3;
        log[160] = 7;
        let expected = Health {
            critical: vec!["spare capacity is low", "reliability is degraded"],
            temperature_celsius: 28,
            available_spare_percent: 9,
            percentage_used: 101,
            power_on_hours: 10_000,
            unsafe_shutdowns: 3,
            media_errors: 7,
        };
        assert_eq!(read(&log), expected);
    }
}
