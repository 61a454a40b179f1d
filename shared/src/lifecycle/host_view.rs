//! What a host's fields mean: claimed, failed, interrupted, reported. Asked by every other part.

use super::credentials::{Credentials, CredentialsRead};
use super::failure;
use super::fault::BmcObservation;
use super::reasons;
use crate::contract::name::{HostKey, Name};
use crate::resource::condition::{self, Truth};
use crate::resource::host::{InspectionPhase, PhysicalHostStatus};
use crate::resource::{API_VERSION, Beskar7Machine, HostState, PhysicalHost, Resource as _};

/// Annotation of a finalizer-like hold: the host object is not removed before its reconciler has seen it.
pub const HOST_FINALIZER: &str = "physicalhost.infrastructure.cluster.x-k8s.io";

/// Whether anybody has claimed the host.
pub fn is_claimed(host: &PhysicalHost) -> bool {
    host.spec.consumer_ref.is_some()
}

/// Name of the machine that has claimed the host, when the reference resolves: a machine of this API in the
/// host's own namespace.
pub fn consumer(host: &PhysicalHost) -> Option<Name> {
    let reference = host.spec.consumer_ref.as_ref()?;
    let own = host.metadata.namespace.as_str();
    let resolves = reference.kind == Beskar7Machine::KIND
        && reference.api_version == API_VERSION
        && (reference.namespace.is_empty() || reference.namespace == own);
    resolves.then(|| reference.name.parse().ok()).flatten()
}

/// Namespace and name of that machine.
pub fn consumer_key(host: &PhysicalHost) -> Option<HostKey> {
    Some(HostKey::new(host.metadata.namespace.clone(), consumer(host)?))
}

/// Whether `machine` is the one that has claimed the host. A reference that names another incarnation of the
/// machine still counts, since identities change when objects move between clusters.
pub fn is_claimed_by(host: &PhysicalHost, machine: &Beskar7Machine) -> bool {
    consumer_key(host).is_some_and(|key| key == machine.metadata.key())
}

/// Whether the host's run has failed: an `Error` that only release ends.
pub fn run_failed(host: &PhysicalHost) -> bool {
    is_claimed(host)
        && host.status.state == HostState::Error
        && failure::is_run_failure(&host.status.error_message)
}

/// Whether a BMC fault put a deploying host into `Error`, as old releases did; its agent may yet report.
pub fn deploy_interrupted(host: &PhysicalHost) -> bool {
    is_claimed(host)
        && host.status.state == HostState::Error
        && host.status.deploying_timestamp.is_some()
        && !run_failed(host)
}

/// Whether the report is in: taken into status, not merely waiting.
pub fn report_in(status: &PhysicalHostStatus) -> bool {
    status.inspection_phase == Some(InspectionPhase::Complete)
        || condition::get(&status.conditions, reasons::HOST_INSPECTED)
            .is_some_and(|c| c.status == Truth::True)
}

/// Whether the boot script of these credentials was fetched.
pub fn script_fetched(status: &PhysicalHostStatus, credentials: &Credentials) -> bool {
    let record = status.bootstrap.as_ref();
    record.is_some_and(|b| b.boot_nonce_consumed_hash == credentials.nonce.sha256_hex())
}

/// Whether the host inspects for a run that is over: its credentials are another run's by now.
///
/// A host's pass and its machine's boot do not exclude each other, so `inspect` of one run may be accepted just
/// as the credentials of the next are minted. Nobody holds credentials of the accepted run any more; only the new
/// one can come to an end. Later states have no such thing: no machine boots once it has accepted the hardware.
pub fn run_replaced(host: &PhysicalHost, credentials: CredentialsRead<'_>) -> bool {
    host.status.state == HostState::Inspecting
        && host.status.run.as_ref().is_some_and(|run| credentials.bound(host).is_ok_and(|c| c.run != *run))
}

/// Whether a BMC fault leaves the host's state alone: a run is under way, done, or failed by itself.
pub fn in_provisioning_substate(host: &PhysicalHost) -> bool {
    is_claimed(host)
        && (matches!(host.status.state, HostState::Inspecting | HostState::Deploying | HostState::Ready)
            || run_failed(host))
}

/// Whether a pass over the host would make anything of what its BMC said. A host without a run, whose BMC answers as it
/// did before, stays as it is: most looks at a fleet are of that kind.
pub fn is_news(host: &PhysicalHost, seen: &BmcObservation) -> bool {
    let status = &host.status;
    let BmcObservation::Up(facts) = seen else { return true };
    let settled = matches!(status.state, HostState::Available | HostState::Ready)
        && condition::get(&status.conditions, reasons::REDFISH_CONNECTION_READY)
            .is_some_and(|c| c.status == Truth::True);
    let told = facts.power.is_none_or(|power| status.observed_power_state == power.as_str())
        && facts.details.as_ref().is_none_or(|details| status.hardware_details.as_ref() == Some(details))
        && facts.addresses.as_ref().is_none_or(|addresses| status.addresses == *addresses);
    !(settled && told)
}
