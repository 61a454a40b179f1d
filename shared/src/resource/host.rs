//! PhysicalHost: one server and its BMC (contract section 13).

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Resource;
use super::agent_options::AgentOptionTexts;
use super::condition::Condition;
use super::metadata::{ObjectMeta, ObjectReference};
use crate::contract::mac::MacAddress;
use crate::contract::name::Name;
use crate::contract::report::InspectionReport;
use crate::contract::time::Time;
use crate::contract::web_url::WebUrl;

/// One server.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PhysicalHost {
    /// [`API_VERSION`](super::API_VERSION).
    pub api_version: String,
    /// `PhysicalHost`.
    pub kind: String,
    /// Metadata.
    pub metadata: ObjectMeta,
    /// What the operator wants.
    pub spec: PhysicalHostSpec,
    /// What the controller found and did.
    #[serde(default)]
    pub status: PhysicalHostStatus,
}

/// What the operator says of a server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PhysicalHostSpec {
    /// How to reach the BMC.
    pub redfish_connection: RedfishConnection,
    /// The machine that has claimed this host; written by the controller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consumer_ref: Option<ObjectReference>,
    /// Addresses the server may network-boot from; Farrier's own, serves `/ipxe/{mac}`.
    #[serde(default, rename = "bootMACAddresses", skip_serializing_if = "Vec::is_empty")]
    pub boot_mac_addresses: Vec<MacAddress>,
    /// How the server's firmware boots from the network; Farrier's own. Left out, nothing is said to the BMC that need
    /// not be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot_mode: Option<BootMode>,
    /// What the agent is told about this server; Farrier's own.
    #[serde(default, skip_serializing_if = "AgentOptionTexts::is_empty")]
    pub agent_options: AgentOptionTexts,
}

/// A way of firmware to boot, as Redfish names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum BootMode {
    /// UEFI.
    #[serde(rename = "UEFI")]
    Uefi,
    /// BIOS.
    Legacy,
}

/// How to reach a BMC.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RedfishConnection {
    /// Base URL of the Redfish service.
    pub address: WebUrl,
    /// Secret with `username` and `password`, in the host's namespace.
    pub credentials_secret_ref: Name,
    /// Skip certificate verification; needs the Secret's consent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub insecure_skip_verify: Option<bool>,
    /// Secret with the CA of the BMC's certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_bundle_secret_ref: Option<Name>,
}

/// Where a host stands. `New` is the empty string on the wire; so are two states the contract declares and
/// never writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum HostState {
    /// Not looked at yet.
    #[default]
    #[serde(rename = "", alias = "Unknown", alias = "Enrolling")]
    New,
    /// Free to be claimed.
    Available,
    /// Claimed, not booted yet.
    InUse,
    /// Booting or inspecting.
    Inspecting,
    /// Writing the operating system.
    Deploying,
    /// The operating system is installed.
    Ready,
    /// Failed; `errorMessage` says why.
    Error,
}

impl HostState {
    /// The state as on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::New => "",
            Self::Available => "Available",
            Self::InUse => "InUse",
            Self::Inspecting => "Inspecting",
            Self::Deploying => "Deploying",
            Self::Ready => "Ready",
            Self::Error => "Error",
        }
    }
}

impl fmt::Display for HostState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// How far inspection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum InspectionPhase {
    /// Declared by the contract, never written.
    Pending,
    /// The machine was told to boot the inspection image.
    Booting,
    /// Declared by the contract, never written.
    InProgress,
    /// The report is in.
    Complete,
    /// Declared by the contract, never written.
    Failed,
    /// No report in time.
    Timeout,
}

/// What the controller found and did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PhysicalHostStatus {
    /// Usable in its present state.
    pub ready: bool,
    /// Where the host stands.
    pub state: HostState,
    /// Power state the BMC last told, `On` or `Off`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub observed_power_state: String,
    /// Why the host is in `Error`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub error_message: String,
    /// What the BMC tells of the hardware.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hardware_details: Option<HardwareDetails>,
    /// Addresses the BMC tells of the host's interfaces.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<Address>,
    /// The agent's report.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inspection_report: Option<InspectionReport>,
    /// How far inspection is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inspection_phase: Option<InspectionPhase>,
    /// When inspection began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inspection_timestamp: Option<Time>,
    /// When deploying began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deploying_timestamp: Option<Time>,
    /// Mirror of the credentials, hashes only, and the boot's consume record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bootstrap: Option<BootstrapStatus>,
    /// Id of the current or last run; Farrier's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Since when the BMC has answered with faults, as opposed to not at all; Farrier's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bmc_fault_since: Option<Time>,
    /// Conditions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// What the BMC tells of the hardware.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HardwareDetails {
    /// Manufacturer.
    pub manufacturer: String,
    /// Model.
    pub model: String,
    /// Serial number.
    pub serial_number: String,
    /// Health.
    pub status: HardwareHealth,
}

/// Redfish's `Status` object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HardwareHealth {
    /// `OK`, `Warning`, `Critical` or empty.
    pub health: String,
    /// The same, including subordinate parts.
    pub health_rollup: String,
    /// `Enabled` and the like.
    pub state: String,
}

/// An address of a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Address {
    /// `InternalIP` or `ExternalIP`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The address.
    pub address: String,
}

/// Mirror of a run's credentials (hashes only) and the consume record of its boot nonce.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BootstrapStatus {
    /// Base URL the agent calls.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub url: String,
    /// SHA-256 of the token.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub token_hash: String,
    /// When the token was minted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issued_at: Option<Time>,
    /// When the token ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Time>,
    /// SHA-256 of the boot nonce.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub boot_nonce_hash: String,
    /// When the boot nonce ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boot_nonce_expires_at: Option<Time>,
    /// When a boot nonce was consumed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boot_nonce_consumed_at: Option<Time>,
    /// SHA-256 of the consumed nonce.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub boot_nonce_consumed_hash: String,
    /// HMAC of the client's address under the consumed nonce.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub boot_nonce_consumed_client_hash: String,
}

impl PhysicalHost {
    /// A new host.
    pub fn new(metadata: ObjectMeta, spec: PhysicalHostSpec) -> Self {
        Self {
            api_version: super::API_VERSION.to_owned(),
            kind: Self::KIND.to_owned(),
            metadata,
            spec,
            status: PhysicalHostStatus::default(),
        }
    }
}

impl Resource for PhysicalHost {
    const KIND: &'static str = "PhysicalHost";
    const API_VERSION: &'static str = super::API_VERSION;
    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }
    fn metadata_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}
