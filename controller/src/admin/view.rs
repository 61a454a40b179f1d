//! What the API shows that is not an object as stored.

use std::collections::BTreeMap;

use farrier_shared::contract::callback::EventName;
use farrier_shared::contract::{HostKey, Time};
use farrier_shared::resource::{
    Beskar7Machine, HostState, MachinePhase, ObjectMeta, PhysicalHost, Secret, condition,
};
use serde::{Deserialize, Serialize};

use crate::progress::ProgressEntry;

/// A Secret without its values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SecretView {
    /// `v1`.
    pub api_version: String,
    /// `Secret`.
    pub kind: String,
    /// Metadata.
    pub metadata: ObjectMeta,
    /// Length of each value in bytes.
    pub data_sizes: BTreeMap<String, usize>,
}

impl SecretView {
    /// The view of a Secret.
    pub fn of(secret: &Secret) -> Self {
        let data_sizes = secret.data.iter().map(|(key, value)| (key.clone(), value.expose().len())).collect();
        Self {
            api_version: secret.api_version.clone(),
            kind: secret.kind.clone(),
            metadata: secret.metadata.clone(),
            data_sizes,
        }
    }
}

/// One line of the watch: where a host stands and what its agent last said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HostLine {
    /// Namespace of the host.
    pub namespace: String,
    /// Name of the host.
    pub name: String,
    /// Where the host stands; empty when not looked at yet.
    pub state: HostState,
    /// Usable in its present state.
    pub ready: bool,
    /// Why the host is in `Error`, what its machine waits for, or what the agent said last.
    pub message: String,
    /// The machine that has claimed the host, or is pinned to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// How far that machine is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_phase: Option<MachinePhase>,
    /// The run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// What the agent last reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<EventName>,
    /// Step under way.
    pub step: Option<String>,
    /// Bytes of the step done.
    pub bytes: Option<u64>,
    /// Bytes of the step in all.
    pub total: Option<u64>,
    /// Current rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_per_second: Option<u64>,
    /// When the agent reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Time>,
    /// The host is gone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deleted: bool,
}

impl HostLine {
    /// The line of a host. Progress of another run than the present one is not shown.
    pub fn of(
        host: &PhysicalHost,
        machine: Option<&Beskar7Machine>,
        progress: Option<&ProgressEntry>,
    ) -> Self {
        let current = |p: &&ProgressEntry| {
            let run = &p.event.run;
            let known = host.status.run.is_none() || run.is_none() || *run == host.status.run;
            // What an agent said before it left is history, not where the host stands.
            known
                && matches!(
                    host.status.state,
                    HostState::InUse | HostState::Inspecting | HostState::Deploying | HostState::Error
                )
        };
        let progress = progress.filter(current);
        let phase = machine.and_then(|m| m.status.phase);
        // The machine follows its host a pass later: what it last waited for is over once the host is installed.
        let installed = host.status.state == HostState::Ready && phase != Some(MachinePhase::Failed);
        let waits_for = machine.filter(|m| !m.status.ready && !installed).and_then(|m| {
            let told = condition::get(&m.status.conditions, "InfrastructureReady")?;
            Some(told.message.clone()).filter(|text| !text.is_empty())
        });
        let own_error = Some(host.status.error_message.clone()).filter(|text| !text.is_empty());
        let event = progress.map(|p| &p.event);
        let agent = event.map(|e| e.message.clone()).filter(|text| !text.is_empty());
        let message = match phase {
            // A host that nobody acts on any more has a reason of its own by and by; the machine's is the cause.
            Some(MachinePhase::Failed) => waits_for.or(own_error),
            _ => own_error.or(agent).or(waits_for),
        };
        Self {
            namespace: host.metadata.namespace.to_string(),
            name: host.metadata.name.to_string(),
            state: host.status.state,
            ready: host.status.ready,
            message: message.unwrap_or_default(),
            machine: machine.map(|m| m.metadata.name.to_string()),
            machine_phase: phase,
            run: host.status.run.clone(),
            event: event.map(|e| e.event),
            step: event.and_then(|e| e.step.clone()),
            bytes: event.and_then(|e| e.bytes),
            total: event.and_then(|e| e.total),
            bytes_per_second: event.and_then(|e| e.bytes_per_second),
            at: progress.map(|p| p.at),
            deleted: false,
        }
    }

    /// The last line of a host that is gone.
    pub fn gone(host: &HostKey) -> Self {
        Self {
            namespace: host.namespace.to_string(),
            name: host.name.to_string(),
            state: HostState::New,
            ready: false,
            message: "deleted".to_owned(),
            machine: None,
            machine_phase: None,
            run: None,
            event: None,
            step: None,
            bytes: None,
            total: None,
            bytes_per_second: None,
            at: None,
            deleted: true,
        }
    }
}

#[cfg(test)]
mod tests {
    use farrier_shared::contract::Time;
    use farrier_shared::resource::condition::{self, Truth};
    use serde_json::json;

    use super::*;

    fn machine(phase: MachinePhase) -> Beskar7Machine {
        let mut machine: Beskar7Machine = serde_json::from_value(json!({
            "apiVersion": farrier_shared::resource::API_VERSION, "kind": "Beskar7Machine",
            "metadata": {"name": "anvil"},
            "spec": {"inspectionImageURL": "http://images/inspection", "targetImageURL": "http://images/os.raw"}
        }))
        .unwrap();
        machine.status.phase = Some(phase);
        let (told, now) = ("The operating system is being written", Time::from_unix(0));
        condition::set(
            &mut machine.status.conditions,
            "InfrastructureReady",
            Truth::False,
            "Waits",
            told,
            now,
        );
        machine
    }

    fn host(state: HostState) -> PhysicalHost {
        let mut host: PhysicalHost = serde_json::from_value(json!({
            "apiVersion": farrier_shared::resource::API_VERSION, "kind": "PhysicalHost",
            "metadata": {"name": "anvil"},
            "spec": {"redfishConnection": {"address": "https://bmc", "credentialsSecretRef": "bmc"}}
        }))
        .unwrap();
        host.status.state = state;
        host
    }

    #[test]
    fn a_machine_that_failed_tells_why_before_its_host_does() {
        let mut host = host(HostState::Error);
        host.status.error_message = "Inspection report not acted on within 10m0s".to_owned();
        let mut machine = machine(MachinePhase::Failed);
        let cause = "insufficient CPU cores: found 4, required 16";
        condition::set(
            &mut machine.status.conditions,
            "InfrastructureReady",
            Truth::False,
            "HardwareRequirementsNotMet",
            cause,
            Time::from_unix(0),
        );
        assert_eq!(HostLine::of(&host, Some(&machine), None).message, cause);
        machine.status.phase = Some(MachinePhase::Inspecting);
        assert_eq!(HostLine::of(&host, Some(&machine), None).message, host.status.error_message);
    }

    #[test]
    fn what_the_machine_last_waited_for_is_not_said_of_an_installed_host() {
        for (state, phase, said) in [
            (HostState::Deploying, MachinePhase::Provisioning, true),
            (HostState::Ready, MachinePhase::Provisioning, false),
            (HostState::Ready, MachinePhase::Failed, true),
        ] {
            let line = HostLine::of(&host(state), Some(&machine(phase)), None);
            assert_eq!(!line.message.is_empty(), said, "{state:?} {phase:?}: {:?}", line.message);
        }
    }
}
