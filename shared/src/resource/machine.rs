//! Beskar7Machine: one operating system wanted on one host (contract section 13).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Resource;
use super::agent_options::AgentOptionTexts;
use super::condition::Condition;
use super::host::Address;
use super::metadata::ObjectMeta;
use crate::contract::digest::Digest;
use crate::contract::disk_pin::DiskPin;
use crate::contract::name::Name;
use crate::contract::provider_id::ProviderId;
use crate::contract::static_ip::StaticIp;
use crate::contract::web_url::WebUrl;

/// One wanted operating system.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Beskar7Machine {
    /// [`API_VERSION`](super::API_VERSION).
    pub api_version: String,
    /// `Beskar7Machine`.
    pub kind: String,
    /// Metadata.
    pub metadata: ObjectMeta,
    /// What the operator wants.
    pub spec: Beskar7MachineSpec,
    /// What the controller did.
    #[serde(default)]
    pub status: Beskar7MachineStatus,
}

/// What to install, and where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Beskar7MachineSpec {
    /// The host this machine got; written by the controller.
    #[serde(default, rename = "providerID", skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<ProviderId>,
    /// Where vmlinuz and initrd.img of the inspection image are.
    #[serde(rename = "inspectionImageURL")]
    pub inspection_image_url: WebUrl,
    /// The OS image.
    #[serde(rename = "targetImageURL")]
    pub target_image_url: WebUrl,
    /// Digest of the served bytes; exactly one of this and `targetImageDigestURL`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_image_digest: Option<Digest>,
    /// A checksum file to take the digest from, https only.
    #[serde(default, rename = "targetImageDigestURL", skip_serializing_if = "Option::is_none")]
    pub target_image_digest_url: Option<WebUrl>,
    /// Disk to write; the smallest that fits when not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_disk: Option<DiskPin>,
    /// Static address of the inspection image.
    #[serde(default, rename = "staticIP", skip_serializing_if = "Option::is_none")]
    pub static_ip: Option<StaticIp>,
    /// What the hardware must have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hardware_requirements: Option<HardwareRequirements>,
    /// Which hosts may be claimed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_selector: Option<LabelSelector>,
    /// The one host to claim; Farrier's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_name: Option<Name>,
    /// User-data; Farrier's own, stands in for the owner Machine's field of the same name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bootstrap: Option<MachineBootstrap>,
    /// What the agent is told about this installation; Farrier's own.
    #[serde(default, skip_serializing_if = "AgentOptionTexts::is_empty")]
    pub agent_options: AgentOptionTexts,
}

/// Where a machine's user-data is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MachineBootstrap {
    /// Secret whose `value` is the user-data, in the machine's namespace.
    pub data_secret_name: Name,
}

/// What the hardware must have; absent or zero means not checked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct HardwareRequirements {
    /// Sum of cores.
    #[serde(rename = "minCPUCores", skip_serializing_if = "Option::is_none")]
    pub min_cpu_cores: Option<i32>,
    /// Sum of memory, 10⁹ bytes.
    #[serde(rename = "minMemoryGB", skip_serializing_if = "Option::is_none")]
    pub min_memory_gb: Option<i32>,
    /// Sum of disks, 10⁹ bytes.
    #[serde(rename = "minDiskGB", skip_serializing_if = "Option::is_none")]
    pub min_disk_gb: Option<i32>,
}

/// Selects objects by label.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct LabelSelector {
    /// Labels that must be equal.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub match_labels: BTreeMap<String, String>,
    /// Further requirements, all of which must hold.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub match_expressions: Vec<LabelRequirement>,
}

/// One requirement of a selector.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LabelRequirement {
    /// Label key.
    pub key: String,
    /// `In`, `NotIn`, `Exists` or `DoesNotExist`; kept as text, since a bad one is a terminal failure with a
    /// reason, not a parse error.
    pub operator: String,
    /// Values for `In` and `NotIn`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
}

/// How far a machine is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum MachinePhase {
    /// No host yet, or the host is not booted yet.
    #[default]
    Pending,
    /// Its host is being inspected.
    Inspecting,
    /// Its host is being written.
    Provisioning,
    /// Done.
    Provisioned,
    /// Failed for good.
    Failed,
}

/// What the controller did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Beskar7MachineStatus {
    /// The operating system is installed.
    pub ready: bool,
    /// What initialisation reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initialization: Option<Initialization>,
    /// How far the machine is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<MachinePhase>,
    /// Addresses copied from the host.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<Address>,
    /// Digest resolved from the checksum file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_image_digest: Option<Digest>,
    /// The checksum file it came from.
    #[serde(rename = "targetImageDigestURL", skip_serializing_if = "Option::is_none")]
    pub target_image_digest_url: Option<WebUrl>,
    /// Conditions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// What initialisation reached.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Initialization {
    /// The machine was provisioned once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provisioned: Option<bool>,
}

impl Beskar7Machine {
    /// A new machine.
    pub fn new(metadata: ObjectMeta, spec: Beskar7MachineSpec) -> Self {
        Self {
            api_version: super::API_VERSION.to_owned(),
            kind: Self::KIND.to_owned(),
            metadata,
            spec,
            status: Beskar7MachineStatus::default(),
        }
    }
}

impl Resource for Beskar7Machine {
    const KIND: &'static str = "Beskar7Machine";
    const API_VERSION: &'static str = super::API_VERSION;
    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }
    fn metadata_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}
