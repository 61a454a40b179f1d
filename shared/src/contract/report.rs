//! The inspection report (contract section 4): what the agent found in the machine.
//!
//! Every field is optional on the way in, may be null, and unknown ones are ignored, as the contract demands; a
//! report is never refused for what it lacks. Farrier's additive facts travel in [`InspectionReport::farrier`].

use serde::{Deserialize, Deserializer, Serialize};

use super::time::Time;

/// Body of `POST /api/v1/inspection/{ns}/{host}` and, with [`timestamp`](Self::timestamp), what status holds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InspectionReport {
    /// When the controller took the report; absent on the wire from the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<Time>,
    /// System manufacturer from SMBIOS type 1.
    #[serde(deserialize_with = "or_default")]
    pub manufacturer: String,
    /// System product name from SMBIOS type 1.
    #[serde(deserialize_with = "or_default")]
    pub model: String,
    /// System serial number from SMBIOS type 1.
    #[serde(deserialize_with = "or_default")]
    pub serial_number: String,
    /// How the machine booted: `UEFI` or `Legacy`.
    #[serde(deserialize_with = "or_default")]
    pub boot_mode_detected: String,
    /// BIOS or UEFI version from SMBIOS type 0.
    #[serde(deserialize_with = "or_default")]
    pub firmware_version: String,
    /// One entry for each populated processor package.
    #[serde(deserialize_with = "or_default")]
    pub cpus: Vec<Cpu>,
    /// One entry for each populated memory module.
    #[serde(deserialize_with = "or_default")]
    pub memory: Vec<MemoryModule>,
    /// Disks, removable ones excluded.
    #[serde(deserialize_with = "or_default")]
    pub disks: Vec<Disk>,
    /// Physical network interfaces.
    #[serde(deserialize_with = "or_default")]
    pub nics: Vec<Nic>,
    /// Facts beyond the contract; the reference controller ignores this key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub farrier: Option<serde_json::Value>,
}

/// Why a body is not a report. Says nothing of its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the inspection report is not a JSON object of the expected shape (line {line}, column {column})")]
pub struct ReportError {
    /// Where reading stopped, from 1; 0 when it never began.
    pub line: usize,
    /// Column there.
    pub column: usize,
}

impl InspectionReport {
    /// Reads a report as it comes from the wire or the store.
    ///
    /// # Errors
    /// When it is not one JSON object whose known fields have their types.
    pub fn from_json(body: &[u8]) -> Result<Self, ReportError> {
        // The decoder would take an array for a struct, field by field.
        if body.trim_ascii_start().first() != Some(&b'{') {
            return Err(ReportError { line: 0, column: 0 });
        }
        serde_json::from_slice(body).map_err(|e| ReportError { line: e.line(), column: e.column() })
    }
}

/// One processor package.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Cpu {
    /// Socket designation.
    #[serde(deserialize_with = "or_default")]
    pub id: String,
    /// Vendor.
    #[serde(deserialize_with = "or_default")]
    pub vendor: String,
    /// Model name.
    #[serde(deserialize_with = "or_default")]
    pub model: String,
    /// Physical cores.
    #[serde(deserialize_with = "or_default")]
    pub cores: i32,
    /// Hardware threads.
    #[serde(deserialize_with = "or_default")]
    pub threads: i32,
    /// Current speed, such as `2.0GHz`.
    #[serde(deserialize_with = "or_default")]
    pub frequency: String,
}

/// One memory module.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MemoryModule {
    /// Slot designation.
    #[serde(deserialize_with = "or_default")]
    pub id: String,
    /// Technology, such as `DDR4`.
    #[serde(deserialize_with = "or_default", rename = "type")]
    pub kind: String,
    /// Size, such as `32GiB`; see [`capacity`](super::capacity).
    #[serde(deserialize_with = "or_default")]
    pub capacity: String,
    /// Speed, such as `3200MHz`.
    #[serde(deserialize_with = "or_default")]
    pub speed: String,
}

/// One disk.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Disk {
    /// Device path, such as `/dev/sda`.
    #[serde(deserialize_with = "or_default")]
    pub name: String,
    /// Model.
    #[serde(deserialize_with = "or_default")]
    pub model: String,
    /// Size in units of 10⁹ bytes, rounded down.
    #[serde(deserialize_with = "or_default", rename = "sizeGB")]
    pub size_gb: i32,
    /// `HDD`, `SSD` or `NVMe`.
    #[serde(deserialize_with = "or_default", rename = "type")]
    pub kind: String,
    /// Serial number.
    #[serde(deserialize_with = "or_default")]
    pub serial_number: String,
}

/// One network interface.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Nic {
    /// Interface name.
    #[serde(deserialize_with = "or_default")]
    pub name: String,
    /// Ethernet address, lower-case with colons.
    #[serde(deserialize_with = "or_default")]
    pub mac_address: String,
    /// Kernel driver.
    #[serde(deserialize_with = "or_default")]
    pub driver: String,
    /// Link speed, such as `10Gbps`; empty when the link is down.
    #[serde(deserialize_with = "or_default")]
    pub speed: String,
    /// Addresses, IPv4 first.
    #[serde(deserialize_with = "or_default")]
    pub ip_addresses: Vec<String>,
}

/// Null counts as absent: an encoder that writes empty lists as null must not have its report refused.
fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Option::<T>::deserialize(deserializer).map(Option::unwrap_or_default)
}
