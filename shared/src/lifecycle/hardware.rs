//! Whether inspected hardware is what the machine asked for (contract section 5).

use crate::contract::capacity;
use crate::contract::report::InspectionReport;
use crate::resource::machine::{Beskar7MachineSpec, HardwareRequirements};

/// Less hardware than required; terminal for the machine. Texts are the contract's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HardwareError {
    /// Too few cores.
    #[error("insufficient CPU cores: found {found}, required {required}")]
    Cores {
        /// Sum over all packages.
        found: i64,
        /// The minimum.
        required: i64,
    },
    /// Too little memory.
    #[error("insufficient memory: found {found} GB, required {required} GB")]
    Memory {
        /// Sum over all modules whose capacity can be read.
        found: i64,
        /// The minimum.
        required: i64,
    },
    /// Too little disk space.
    #[error("insufficient disk space: found {found} GB, required {required} GB")]
    Disk {
        /// Sum over all disks.
        found: i64,
        /// The minimum.
        required: i64,
    },
}

/// Checks cores, then memory, then disks; a minimum that is absent or not positive is not checked. A module
/// whose capacity cannot be read counts for nothing.
///
/// # Errors
/// The first minimum that is not met.
pub fn check(report: &InspectionReport, wanted: &HardwareRequirements) -> Result<(), HardwareError> {
    let minimum = |n: Option<i32>| n.filter(|n| *n > 0).map(i64::from);
    if let Some(required) = minimum(wanted.min_cpu_cores) {
        let found = report.cpus.iter().map(|c| i64::from(c.cores)).sum();
        if found < required {
            return Err(HardwareError::Cores { found, required });
        }
    }
    if let Some(required) = minimum(wanted.min_memory_gb) {
        let modules = report.memory.iter().filter_map(|m| capacity::gigabytes(&m.capacity).ok());
        let found = modules.fold(0_i64, i64::saturating_add);
        if found < required {
            return Err(HardwareError::Memory { found, required });
        }
    }
    if let Some(required) = minimum(wanted.min_disk_gb) {
        let found = report.disks.iter().map(|d| i64::from(d.size_gb)).sum();
        if found < required {
            return Err(HardwareError::Disk { found, required });
        }
    }
    Ok(())
}

/// A warning when the disks satisfy `minDiskGB` only together.
///
/// The contract compares the sum, but an image lands on one disk: the pinned one where the report shows it by
/// that name, else whichever the agent picks, which may be any.
pub fn disk_warning(report: &InspectionReport, spec: &Beskar7MachineSpec) -> Option<String> {
    let required = spec.hardware_requirements.as_ref()?.min_disk_gb.filter(|n| *n > 0)?;
    let pinned =
        spec.target_disk.as_ref().and_then(|pin| report.disks.iter().find(|d| d.name == pin.as_str()));
    if let Some(disk) = pinned {
        return (disk.size_gb < required).then(|| {
            format!("target disk {} has {} GB, less than the required {required} GB", disk.name, disk.size_gb)
        });
    }
    let small: Vec<String> = report
        .disks
        .iter()
        .filter(|d| d.size_gb < required)
        .map(|d| format!("{} ({} GB)", d.name, d.size_gb))
        .collect();
    (!small.is_empty()).then(|| {
        let list = small.join(", ");
        format!("smaller than the required {required} GB by themselves: {list}; set targetDisk to be sure")
    })
}
