//! The inspection report (contract section 4): what the agent found in the machine.
//!
//! Every field is optional on the way in and unknown ones are ignored, as the contract demands; a report is
//! never refused for what it lacks. Farrier's additive facts travel in [`InspectionReport::farrier`].

use serde::{Deserialize, Serialize};

use super::time::Time;

/// Body of `POST /api/v1/inspection/{ns}/{host}` and, with [`timestamp`](Self::timestamp), what status holds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InspectionReport {
    /// When the controller took the report; absent on the wire from the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<Time>,
    /// System manufacturer from SMBIOS type 1.
    pub manufacturer: String,
    /// System product name from SMBIOS type 1.
    pub model: String,
    /// System serial number from SMBIOS type 1.
    pub serial_number: String,
    /// How the machine booted: `UEFI` or `Legacy`.
    pub boot_mode_detected: String,
    /// BIOS or UEFI version from SMBIOS type 0.
    pub firmware_version: String,
    /// One entry for each populated processor package.
    pub cpus: Vec<Cpu>,
    /// One entry for each populated memory module.
    pub memory: Vec<MemoryModule>,
    /// Disks, removable ones excluded.
    pub disks: Vec<Disk>,
    /// Physical network interfaces.
    pub nics: Vec<Nic>,
    /// Facts beyond the contract; the reference controller ignores this key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub farrier: Option<serde_json::Value>,
}

/// One processor package.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Cpu {
    /// Socket designation.
    pub id: String,
    /// Vendor.
    pub vendor: String,
    /// Model name.
    pub model: String,
    /// Physical cores.
    pub cores: i32,
    /// Hardware threads.
    pub threads: i32,
    /// Current speed, such as `2.0GHz`.
    pub frequency: String,
}

/// One memory module.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MemoryModule {
    /// Slot designation.
    pub id: String,
    /// Technology, such as `DDR4`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Size, such as `32GiB`; see [`capacity`](super::capacity).
    pub capacity: String,
    /// Speed, such as `3200MHz`.
    pub speed: String,
}

/// One disk.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Disk {
    /// Device path, such as `/dev/sda`.
    pub name: String,
    /// Model.
    pub model: String,
    /// Size in units of 10⁹ bytes, rounded down.
    #[serde(rename = "sizeGB")]
    pub size_gb: i32,
    /// `HDD`, `SSD` or `NVMe`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Serial number.
    pub serial_number: String,
}

/// One network interface.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Nic {
    /// Interface name.
    pub name: String,
    /// Ethernet address, lower-case with colons.
    pub mac_address: String,
    /// Kernel driver.
    pub driver: String,
    /// Link speed, such as `10Gbps`; empty when the link is down.
    pub speed: String,
    /// Addresses, IPv4 first.
    pub ip_addresses: Vec<String>,
}
