//! Signals: what handlers and the machine reconciler ask of a host, each bound to a run.

use serde::{Deserialize, Serialize};

use crate::contract::binding::Binding;

/// Which signal. One of each may wait on a host at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum SignalKey {
    /// `inspect`, `inspect-complete` or `timeout`, from the machine reconciler.
    InspectionRequest,
    /// A report waits to be taken, from the inspection handler.
    InspectionResult,
    /// The image is installed, from the provisioned handler.
    Provisioned,
    /// The run failed, from the provision-failed handler; the value is the sanitised reason.
    ProvisionFailed,
}

impl SignalKey {
    /// Every key.
    pub const ALL: [Self; 4] =
        [Self::InspectionRequest, Self::InspectionResult, Self::Provisioned, Self::ProvisionFailed];

    /// The annotation key of the reference, prefix included; also the key a [`Binding`] covers.
    pub fn annotation(self) -> &'static str {
        match self {
            Self::InspectionRequest => "infrastructure.cluster.x-k8s.io/inspection-request",
            Self::InspectionResult => "infrastructure.cluster.x-k8s.io/inspection-result-ref",
            Self::Provisioned => "infrastructure.cluster.x-k8s.io/provisioned-request",
            Self::ProvisionFailed => "infrastructure.cluster.x-k8s.io/provision-failed-request",
        }
    }
}

/// A waiting signal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Signal {
    /// Which.
    pub key: SignalKey,
    /// Its value.
    pub value: String,
    /// Its binding; a signal without one is dropped.
    pub binding: Option<Binding>,
    /// The stored report text, for [`SignalKey::InspectionResult`] only.
    pub report: Option<String>,
}
