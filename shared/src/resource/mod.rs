//! The objects operators write and read: PhysicalHost, Beskar7Machine, Secret.
//!
//! Field names, kinds and state strings are the reference's (contract section 13), so that the same YAML works
//! on every store. Fields of Farrier's own are additive and say so. Specs refuse unknown fields, so that a
//! typing error is an error; status tolerates them.

pub mod agent_options;
pub mod condition;
pub mod host;
pub mod machine;
pub mod metadata;
pub mod secret;
pub mod validate;

pub use agent_options::AgentOptionTexts;
pub use condition::Condition;
pub use host::{HostState, PhysicalHost, PhysicalHostSpec, PhysicalHostStatus};
pub use machine::{Beskar7Machine, Beskar7MachineSpec, Beskar7MachineStatus, MachinePhase};
pub use metadata::{ObjectMeta, ObjectReference};
pub use secret::Secret;
pub use validate::ValidationError;

/// API version of PhysicalHost and Beskar7Machine.
pub const API_VERSION: &str = "infrastructure.cluster.x-k8s.io/v1beta2";

/// What every stored object has in common.
pub trait Resource: Clone + Send + Sync + serde::Serialize + serde::de::DeserializeOwned + 'static {
    /// Kind, as in YAML.
    const KIND: &'static str;
    /// API version, as in YAML.
    const API_VERSION: &'static str;
    /// The object's metadata.
    fn metadata(&self) -> &ObjectMeta;
    /// The object's metadata, to change.
    fn metadata_mut(&mut self) -> &mut ObjectMeta;
}
