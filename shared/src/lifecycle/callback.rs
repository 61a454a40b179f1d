//! In which host states a handler records what the agent reported (contract section 2).
//!
//! Whatever is decided here, the agent is answered 202: an authenticated report is never an error to it.

use super::host_view;
use crate::resource::machine::HardwareRequirements;
use crate::resource::{Beskar7Machine, HostState, MachinePhase, PhysicalHost};

/// What a handler does with an authenticated report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reception {
    /// Record the signal, bound to the run; answer 202 once it is durable.
    Record,
    /// Answer 202, change nothing.
    Ignore,
    /// Remove a waiting signal of the same key, then answer 202: it would only be dropped later.
    Clear,
}

/// An inspection report. Recorded on every claimed host: the reconciler weighs it.
pub fn inspection(host: &PhysicalHost, _report_waits: bool) -> Reception {
    if host_view::is_claimed(host) && !host_view::run_failed(host) {
        Reception::Record
    } else {
        Reception::Ignore
    }
}

/// Success. `report_waits` tells whether a report of the present run is recorded and not taken yet; it must have
/// been looked for before `host` was read, since a report leaves the record for the host's status.
pub fn provisioned(host: &PhysicalHost, report_waits: bool) -> Reception {
    let taken = match host.status.state {
        HostState::Deploying | HostState::Ready => true,
        HostState::Inspecting => host_view::is_claimed(host),
        HostState::Error => host_view::deploy_interrupted(host) || outran_request(host, report_waits),
        HostState::InUse => outran_request(host, report_waits),
        HostState::New | HostState::Available => false,
    };
    if taken { Reception::Record } else { Reception::Ignore }
}

/// Failure; `report_waits` as for [`provisioned`].
pub fn provision_failed(host: &PhysicalHost, report_waits: bool) -> Reception {
    match host.status.state {
        HostState::Deploying => Reception::Record,
        HostState::Inspecting if host_view::is_claimed(host) => Reception::Record,
        HostState::Error if host_view::deploy_interrupted(host) || outran_request(host, report_waits) => {
            Reception::Record
        }
        HostState::InUse if outran_request(host, report_waits) => Reception::Record,
        HostState::Error => Reception::Clear,
        _ => Reception::Ignore,
    }
}

/// Why an agent gets no user-data now. It is what the agent waits for before it writes anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum NoUserData {
    /// The machine or its host's run has failed.
    #[error("the run has failed")]
    Failed,
    /// The machine asks something of the hardware, and has not accepted this one yet.
    #[error("the hardware is not accepted yet")]
    NotAccepted,
}

/// Whether the agent may have the machine's user-data. The contract's agent goes on from its report to the disk
/// without waiting for a verdict on it, so hardware that may yet be refused would be written over.
///
/// # Errors
/// [`NoUserData`]; the agent is told nothing but that there is none yet, and asks again.
pub fn user_data(host: &PhysicalHost, machine: &Beskar7Machine) -> Result<(), NoUserData> {
    if machine.status.phase == Some(MachinePhase::Failed) || host_view::run_failed(host) {
        return Err(NoUserData::Failed);
    }
    let asks =
        machine.spec.hardware_requirements.as_ref().is_some_and(|r| *r != HardwareRequirements::default());
    let accepted = matches!(host.status.state, HostState::Deploying | HostState::Ready)
        || host_view::deploy_interrupted(host);
    if asks && !accepted { Err(NoUserData::NotAccepted) } else { Ok(()) }
}

/// Whether the agent is ahead of the host: its report is in, or waits, although the host has not been told of the
/// boot, because the controller was slow, was restarted, or met a BMC fault. What such an agent reports next must
/// not be lost.
fn outran_request(host: &PhysicalHost, report_waits: bool) -> bool {
    let reported = host.status.run.is_some() && host_view::report_in(&host.status);
    host_view::is_claimed(host) && !host_view::run_failed(host) && (reported || report_waits)
}
