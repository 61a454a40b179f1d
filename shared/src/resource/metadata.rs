//! Object metadata, the part of Kubernetes' that the lifecycle uses.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::contract::name::{HostKey, Name};
use crate::contract::time::Time;

/// Metadata of an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ObjectMeta {
    /// Name, unique among its kind in the namespace.
    pub name: Name,
    /// Namespace; `default` when not given.
    #[serde(default = "default_namespace")]
    pub namespace: Name,
    /// Identity of this incarnation; set by the store.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// Version for compare-and-swap; set by the store, opaque.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub resource_version: String,
    /// When it was created; set by the store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub creation_timestamp: Option<Time>,
    /// When deletion was asked for; the object goes when its finalizers are gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion_timestamp: Option<Time>,
    /// Who must let go before the object is removed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub finalizers: Vec<String>,
    /// Labels, for selectors.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

fn default_namespace() -> Name {
    "default".parse().unwrap_or_else(|_| unreachable!("`default` is a valid name"))
}

impl ObjectMeta {
    /// Metadata of a new object.
    pub fn new(namespace: Name, name: Name) -> Self {
        Self {
            name,
            namespace,
            uid: String::new(),
            resource_version: String::new(),
            creation_timestamp: None,
            deletion_timestamp: None,
            finalizers: Vec::new(),
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
        }
    }

    /// Namespace and name.
    pub fn key(&self) -> HostKey {
        HostKey::new(self.namespace.clone(), self.name.clone())
    }

    /// Whether any value of the pause annotation is present.
    pub fn is_paused(&self) -> bool {
        self.annotations.contains_key(PAUSED)
    }
}

/// Annotation that pauses an object, whatever its value.
pub const PAUSED: &str = "cluster.x-k8s.io/paused";

/// Names another object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ObjectReference {
    /// Kind.
    #[serde(default)]
    pub kind: String,
    /// API version.
    #[serde(default)]
    pub api_version: String,
    /// Name.
    #[serde(default)]
    pub name: String,
    /// Namespace; empty means that of the referring object.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Identity of the incarnation.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
}
