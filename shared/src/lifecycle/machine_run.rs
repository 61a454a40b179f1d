//! A machine with a host: what each state of the host means for it.

use super::boot_plan::BootPlan;
use super::credentials::CredentialsRead;
use super::deadline::Clock;
use super::failure;
use super::fault::{self, is_waited_out};
use super::hardware;
use super::host_view;
use super::machine::{BootstrapRead, MachineDecision, MachineEffect, MachineFacts};
use super::machine_release;
use super::machine_status::Draft;
use super::reasons;
use super::signal::SignalKey;
use super::timing::spoken;
use super::verdict;
use crate::contract::provider_id::ProviderId;
use crate::resource::condition::{self, Truth};
use crate::resource::host::InspectionPhase;
use crate::resource::machine::{Initialization, MachinePhase};
use crate::resource::{HostState, PhysicalHost};

/// One pass over a machine that has this host.
pub(super) fn decide(facts: &MachineFacts<'_>, host: &PhysicalHost, mut draft: Draft) -> MachineDecision {
    if host.metadata.is_paused() {
        return host_paused(facts, host, draft);
    }
    if claimed_by_predecessor(facts, host) {
        return machine_release::let_go(facts, host, draft);
    }
    associate(host, &mut draft);
    if condition::get(&draft.status.conditions, reasons::INFRASTRUCTURE_READY).is_none() {
        draft.not_ready(reasons::PHYSICAL_HOST_NOT_READY, "The host is claimed and not installed yet");
    }
    match host.status.state {
        HostState::Ready => ready(facts, host, draft),
        HostState::Deploying => deploying(facts, host, draft),
        HostState::Inspecting => inspecting(facts, host, draft),
        HostState::InUse => in_use(facts, host, draft),
        HostState::Error => host_error(facts, host, draft),
        HostState::New | HostState::Available => {
            draft.phase(MachinePhase::Pending);
            draft.not_ready(reasons::PHYSICAL_HOST_NOT_READY, "The host has not seen the claim yet");
            draft.decide(Vec::new(), Vec::new(), facts.clock.timings.machine_poll)
        }
    }
}

fn associate(host: &PhysicalHost, draft: &mut Draft) {
    let associated = reasons::PHYSICAL_HOST_ASSOCIATED;
    let text = format!("Host {} is claimed", host.metadata.key());
    draft.set(associated, Truth::True, associated, &text);
}

/// The operator wants nothing done to the host: its machine waits, whatever state it is in, and no deadline ends
/// meanwhile. One that is installed already is none the less so.
fn host_paused(facts: &MachineFacts<'_>, host: &PhysicalHost, mut draft: Draft) -> MachineDecision {
    if !draft.status.ready {
        associate(host, &mut draft);
        draft.not_ready(reasons::PHYSICAL_HOST_PAUSED, "The host is paused");
    }
    draft.decide(Vec::new(), Vec::new(), facts.clock.timings.machine_poll)
}

/// Whether the claim is that of an earlier machine of the same name, whose run or installation is not this
/// one's. Before the run starts that does no harm, since credentials are minted per identity; and a machine
/// that was moved here with its host carries the host's provider id.
fn claimed_by_predecessor(facts: &MachineFacts<'_>, host: &PhysicalHost) -> bool {
    let machine = facts.machine;
    let other =
        host.spec.consumer_ref.as_ref().is_some_and(|c| !c.uid.is_empty() && c.uid != machine.metadata.uid);
    let moved = machine.spec.provider_id.as_ref().is_some_and(|id| *id.host() == host.metadata.key());
    let ours = match facts.credentials {
        CredentialsRead::Present(c) => c.consumer_uid == machine.metadata.uid,
        CredentialsRead::Absent => false,
        CredentialsRead::Unreadable => true,
    };
    let running =
        matches!(host.status.state, HostState::Inspecting | HostState::Deploying | HostState::Ready);
    let failed = host_view::run_failed(host);
    other && !moved && !ours && (running || failed)
}

/// Installed: copy what the host tells, tidy up once, and let the token end.
fn ready(facts: &MachineFacts<'_>, host: &PhysicalHost, mut draft: Draft) -> MachineDecision {
    let (machine, timings) = (facts.machine, facts.clock.timings);
    let key = host.metadata.key();
    let mut before = Vec::new();
    let id = ProviderId::of(&key);
    if machine.spec.provider_id.as_ref() != Some(&id) {
        before.push(MachineEffect::SetProviderId(id));
    }
    if machine.status.phase != Some(MachinePhase::Provisioned) {
        before.push(MachineEffect::ClearBootOverride(key));
    }
    if !host.status.addresses.is_empty() {
        draft.status.addresses.clone_from(&host.status.addresses);
    }
    let infrastructure = reasons::INFRASTRUCTURE_READY;
    draft.set(infrastructure, Truth::True, reasons::PROVISIONED, "The operating system is installed");
    draft.set(reasons::BOOTSTRAP_DATA_READY, Truth::True, reasons::BOOTSTRAP_DATA_READY, "");
    draft.status.ready = true;
    draft.status.initialization = Some(Initialization { provisioned: Some(true) });
    draft.phase(MachinePhase::Provisioned);
    let after = cut_token(facts, host, false);
    draft.decide(before, after, timings.settled)
}

/// Being written. The host alone keeps the deadline: a success and a deadline are weighed in one place, so a
/// machine that has failed never finds its host `Ready` after all.
fn deploying(facts: &MachineFacts<'_>, host: &PhysicalHost, mut draft: Draft) -> MachineDecision {
    let clock = &facts.clock;
    draft.phase(MachinePhase::Provisioning);
    draft.not_ready(reasons::PHYSICAL_HOST_NOT_READY, "The operating system is being written");
    let left =
        host.status.deploying_timestamp.map(|began| clock.deployment(host, began).ends.since(clock.now));
    let requeue = left.map_or(clock.timings.machine_poll, |left| left.max(clock.timings.soon));
    draft.decide(Vec::new(), Vec::new(), requeue.min(clock.timings.machine_poll))
}

fn inspecting(facts: &MachineFacts<'_>, host: &PhysicalHost, mut draft: Draft) -> MachineDecision {
    let clock = &facts.clock;
    if host_view::run_replaced(host, facts.credentials) {
        // Neither the report nor the deadline of the accepted run is the present one's; the host's next pass
        // sees to it.
        draft.phase(MachinePhase::Inspecting);
        draft.not_ready(reasons::PHYSICAL_HOST_NOT_READY, "The host is being booted for inspection");
        return draft.decide(Vec::new(), Vec::new(), clock.timings.machine_poll);
    }
    match host.status.inspection_phase {
        // Complete is looked at before the clock: a report in time is in time.
        Some(InspectionPhase::Complete) => return reported(facts, host, draft),
        Some(InspectionPhase::Failed) => {
            draft.fail(reasons::INSPECTION_FAILED, "Inspection failed");
            return draft.decide(Vec::new(), cut_token(facts, host, true), clock.timings.healthy);
        }
        _ => {}
    }
    let began = host.status.inspection_timestamp.unwrap_or(clock.now);
    let ends = clock.inspection(began);
    if clock.now >= ends {
        let limit = spoken(clock.timings.inspection_timeout);
        draft.fail(reasons::INSPECTION_TIMED_OUT, &format!("Inspection did not complete within {limit}"));
        // Best effort: a machine that cannot sign has failed all the same, and the host gives up by itself.
        let before = request(facts, host, "timeout", true).into_iter().collect();
        return draft.decide(before, cut_token(facts, host, true), clock.timings.healthy);
    }
    draft.phase(MachinePhase::Inspecting);
    draft.not_ready(reasons::PHYSICAL_HOST_NOT_READY, "The host is being inspected");
    // Once its script was fetched, an agent has run: it has switched the machine off itself, and what would boot now is
    // whatever the disk holds.
    let fetched = facts.credentials.bound(host).is_ok_and(|c| host_view::script_fetched(&host.status, c));
    let long_dark = clock.now.since(began) > clock.timings.power_recheck_after
        && host.status.observed_power_state == fault::PowerState::Off.as_str()
        && !fetched;
    let after = long_dark.then(|| MachineEffect::EnsurePoweredOn(host.metadata.key())).into_iter().collect();
    let left = ends.since(clock.now).max(clock.timings.soon);
    draft.decide(Vec::new(), after, clock.timings.machine_poll.min(left))
}

/// The report is in: accept the hardware or fail for good.
fn reported(facts: &MachineFacts<'_>, host: &PhysicalHost, mut draft: Draft) -> MachineDecision {
    let timings = facts.clock.timings;
    draft.phase(MachinePhase::Inspecting);
    draft.not_ready(reasons::PHYSICAL_HOST_NOT_READY, "The host's hardware is being checked");
    let Some(report) = &host.status.inspection_report else {
        return draft.decide(Vec::new(), Vec::new(), timings.incomplete);
    };
    let wanted = facts.machine.spec.hardware_requirements.clone().unwrap_or_default();
    if let Err(error) = hardware::check(report, &wanted) {
        draft.fail(reasons::HARDWARE_REQUIREMENTS_NOT_MET, &error.to_string());
        return draft.decide(Vec::new(), cut_token(facts, host, true), timings.healthy);
    }
    match hardware::disk_warning(report, &facts.machine.spec) {
        Some(text) => draft.set(reasons::DISK_SIZE_WARNING, Truth::True, reasons::DISK_TOO_SMALL, &text),
        None if condition::get(&draft.status.conditions, reasons::DISK_SIZE_WARNING).is_some() => {
            draft.set(reasons::DISK_SIZE_WARNING, Truth::False, reasons::DISK_LARGE_ENOUGH, "");
        }
        None => {}
    }
    match request(facts, host, "inspect-complete", false) {
        Some(effect) => draft.decide(vec![effect], Vec::new(), timings.soon),
        None => {
            let decision = draft.decide(Vec::new(), Vec::new(), timings.machine_poll);
            let error = "inspect-complete cannot be signed: the host's credentials are missing or another's";
            MachineDecision { error: Some(error.to_owned()), ..decision }
        }
    }
}

/// Claimed and not booted: user-data first, then the boot.
fn in_use(facts: &MachineFacts<'_>, host: &PhysicalHost, mut draft: Draft) -> MachineDecision {
    let timings = facts.clock.timings;
    if facts.machine.spec.provider_id.is_some() {
        draft.not_ready(reasons::WAITING_FOR_HOST_ADOPTION, "The host was moved here and is not adopted yet");
        return draft.decide(Vec::new(), Vec::new(), timings.machine_poll);
    }
    let data = reasons::BOOTSTRAP_DATA_READY;
    match facts.bootstrap {
        BootstrapRead::Present => draft.set(data, Truth::True, data, ""),
        BootstrapRead::Unnamed => {
            draft.phase(MachinePhase::Pending);
            draft.set(data, Truth::False, reasons::WAITING_FOR_BOOTSTRAP_DATA, "No user-data is named yet");
            return draft.decide(Vec::new(), Vec::new(), timings.machine_poll);
        }
        BootstrapRead::Missing => {
            let text = "The named user-data Secret does not exist";
            draft.set(data, Truth::False, reasons::BOOTSTRAP_DATA_UNAVAILABLE, text);
            draft.fail(reasons::BOOTSTRAP_DATA_UNAVAILABLE, text);
            return draft.decide(Vec::new(), cut_token(facts, host, true), timings.healthy);
        }
        BootstrapRead::Unreadable => {
            let decision = draft.decide(Vec::new(), Vec::new(), timings.machine_poll);
            return MachineDecision {
                error: Some("the user-data Secret cannot be read".to_owned()),
                ..decision
            };
        }
    }
    let foreign = match facts.credentials {
        CredentialsRead::Present(c) => c.host_uid != host.metadata.uid,
        CredentialsRead::Absent | CredentialsRead::Unreadable => false,
    };
    if foreign {
        let text = "A credentials record of another host object is in the way; remove it";
        draft.not_ready(reasons::BOOTSTRAP_CREDENTIALS_CONFLICT, text);
        let decision = draft.decide(Vec::new(), Vec::new(), timings.machine_poll);
        return MachineDecision { error: Some(text.to_owned()), ..decision };
    }
    draft.phase(MachinePhase::Inspecting);
    draft.not_ready(reasons::PHYSICAL_HOST_NOT_READY, "The host is being booted for inspection");
    let plan = BootPlan { host: host.metadata.key(), booted_run: facts.booted(host) };
    draft.decide(vec![MachineEffect::Boot(Box::new(plan))], Vec::new(), timings.machine_poll)
}

/// In `Error`: wait for a BMC that may come back, or fail for good.
fn host_error(facts: &MachineFacts<'_>, host: &PhysicalHost, mut draft: Draft) -> MachineDecision {
    let timings = facts.clock.timings;
    if waits_for_bmc(host, &facts.clock) {
        draft.not_ready(reasons::WAITING_FOR_BMC, &host.status.error_message);
        return draft.decide(Vec::new(), Vec::new(), timings.machine_poll);
    }
    let message = &host.status.error_message;
    let reason = failure::machine_reason(message);
    let text = match reason {
        reasons::INSPECTION_TIMED_OUT => {
            format!("Inspection did not complete within {}", spoken(timings.inspection_timeout))
        }
        reasons::PHYSICAL_HOST_ERROR => {
            format!("PhysicalHost {:?} in error state: {message}", host.metadata.name.as_str())
        }
        _ => message.clone(),
    };
    draft.fail(reason, &text);
    let after = cut_token(facts, host, true);
    draft.decide(Vec::new(), after, timings.healthy)
}

/// Whether the host's `Error` is its BMC's and may pass: it is back already, or is away, or waits for the
/// operator's consent. Other faults have a while as well: a BMC that restarts, or is busy, answers anything, and a
/// Secret that is replaced is gone for a moment.
fn waits_for_bmc(host: &PhysicalHost, clock: &Clock<'_>) -> bool {
    !host_view::run_failed(host)
        && condition::get(&host.status.conditions, reasons::REDFISH_CONNECTION_READY).is_some_and(|c| {
            let since = host.status.bmc_fault_since.unwrap_or(c.last_transition_time);
            let young = since <= clock.now && clock.now.since(since) < clock.timings.bmc_patience;
            c.status == Truth::True || is_waited_out(&c.reason) || young
        })
}

/// Failed for good: nothing is reconciled any more but the end of its token.
pub(super) fn failed_already(facts: &MachineFacts<'_>, draft: Draft) -> MachineDecision {
    let after = facts.host().map(|host| cut_token(facts, host, true)).unwrap_or_default();
    let untouched = draft.untouched(facts.clock.timings.settled);
    MachineDecision { effects: after, ..untouched }
}

/// Cuts the token of a run that has ended. After a failure only this very machine's, and not while the host is
/// in an `Error` about its BMC.
fn cut_token(facts: &MachineFacts<'_>, host: &PhysicalHost, failed: bool) -> Vec<MachineEffect> {
    let Ok(credentials) = facts.credentials.bound(host) else { return Vec::new() };
    let other =
        !credentials.consumer_uid.is_empty() && credentials.consumer_uid != facts.machine.metadata.uid;
    let bmc_error = host.status.state == HostState::Error && !host_view::run_failed(host);
    if failed && (other || bmc_error) {
        return Vec::new();
    }
    let cut = credentials.cut(facts.clock.now, facts.clock.timings);
    let effect = |c| MachineEffect::CutToken { host: host.metadata.key(), credentials: Box::new(c) };
    cut.map(effect).into_iter().collect()
}

/// A signed request to the host, or nothing when there is nothing to sign with.
fn request(
    facts: &MachineFacts<'_>,
    host: &PhysicalHost,
    value: &str,
    best_effort: bool,
) -> Option<MachineEffect> {
    let credentials = facts.credentials.bound(host).ok()?;
    let signal = verdict::sign(host, credentials, SignalKey::InspectionRequest, value, None);
    Some(MachineEffect::Signal { host: host.metadata.key(), signal, best_effort })
}
