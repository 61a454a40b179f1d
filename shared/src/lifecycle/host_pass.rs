//! The steps of a pass over a host, in the order [`decide_host`](super::host::decide_host) takes them.

use super::credentials;
use super::deadline::Deadline;
use super::failure;
use super::fault::BmcObservation;
use super::host::{ConsumerRead, HostDecision, HostEffect, HostFacts, consumer_paused};
use super::host_table::{self, Cause, Guard};
use super::host_view;
use super::reasons;
use super::signal::{Signal, SignalKey};
use super::verdict::{Verdict, verdict};
use crate::contract::provider_id::ProviderId;
use crate::contract::report::InspectionReport;
use crate::contract::time::Time;
use crate::resource::condition::{self, Truth};
use crate::resource::host::InspectionPhase;
use crate::resource::{HostState, PhysicalHost};

/// The pass under way.
pub(super) struct Pass<'a> {
    facts: &'a HostFacts<'a>,
    /// The host as it will be: status changes as the pass goes on.
    host: PhysicalHost,
    signals: Vec<(&'a Signal, Verdict)>,
    history: Vec<HostEffect>,
    removals: Vec<HostEffect>,
    others: Vec<HostEffect>,
    notes: Vec<String>,
    look_again: bool,
}

impl<'a> Pass<'a> {
    pub(super) fn new(facts: &'a HostFacts<'a>) -> Self {
        let judge = |signal: &'a Signal| (signal, verdict(facts.host, facts.credentials, signal));
        Self {
            facts,
            host: facts.host.clone(),
            signals: facts.signals.iter().map(judge).collect(),
            history: Vec::new(),
            removals: Vec::new(),
            others: Vec::new(),
            notes: Vec::new(),
            look_again: false,
        }
    }

    fn now(&self) -> Time {
        self.facts.clock.now
    }

    fn state(&self) -> HostState {
        self.host.status.state
    }

    fn claimed(&self) -> bool {
        host_view::is_claimed(&self.host)
    }

    /// Asks the table; everything that goes with entering a state is the caller's.
    fn enter(&mut self, cause: Cause, message: &str) -> bool {
        let view = self.host.clone();
        let holds = |guard: Guard| match guard {
            Guard::Always => true,
            Guard::Unclaimed => !host_view::is_claimed(&view),
            Guard::ReportIn => host_view::report_in(&view.status),
            Guard::NotRunFailed => !host_view::run_failed(&view),
            Guard::DeployInterrupted => host_view::deploy_interrupted(&view),
        };
        let Some(row) = host_table::enter(&mut self.host.status, cause, message, holds) else { return false };
        let run = view.status.run.as_deref().or(self.host.status.run.as_deref());
        self.history.push(HostEffect::Record(row.entry(self.now(), message, run)));
        true
    }

    fn set_condition(&mut self, kind: &str, status: Truth, reason: &str, message: &str) {
        let now = self.now();
        condition::set(&mut self.host.status.conditions, kind, status, reason, message, now);
    }

    /// The waiting signal with this key, if it is bound. A rejected one is removed; one that cannot be judged
    /// stays for the next pass.
    fn bound(&mut self, key: SignalKey) -> Option<&'a Signal> {
        let (signal, verdict) = *self.signals.iter().find(|(s, _)| s.key == key)?;
        match verdict {
            Verdict::Bound => Some(signal),
            Verdict::Unverifiable => None,
            Verdict::Rejected => {
                self.drop_signal(signal, "is not bound to the present run");
                None
            }
        }
    }

    fn drop_signal(&mut self, signal: &Signal, why: &str) {
        self.removals.push(HostEffect::RemoveSignal(signal.clone()));
        self.notes.push(format!("{}: {} {why}", self.host.metadata.key(), signal.key.annotation()));
    }

    fn consume(&mut self, signal: &Signal) {
        self.removals.push(HostEffect::RemoveSignal(signal.clone()));
    }

    /// Gives conditions of old releases the reason that validation demands; valid ones stay untouched.
    pub(super) fn repair_conditions(&mut self) {
        for condition in &mut self.host.status.conditions {
            if condition.reason.is_empty() {
                condition.reason = "Unknown".to_owned();
            }
        }
    }

    /// A host nobody claims carries nothing of its last run, or the next claim would inherit it.
    pub(super) fn clear_released(&mut self) {
        if self.claimed() {
            return;
        }
        let status = &mut self.host.status;
        let had_run = status.run.take().is_some()
            | status.inspection_timestamp.take().is_some()
            | status.deploying_timestamp.take().is_some()
            | status.inspection_phase.take().is_some();
        let inspected = condition::get(&status.conditions, reasons::HOST_INSPECTED).is_some();
        if had_run || inspected {
            self.set_condition(
                reasons::HOST_INSPECTED,
                Truth::False,
                reasons::HOST_RELEASED,
                "The host was released",
            );
        }
        if had_run {
            self.others.push(HostEffect::ForgetBoot);
        }
        for (signal, _) in std::mem::take(&mut self.signals) {
            self.drop_signal(signal, "waits on a host nobody claims");
        }
    }

    /// A host whose machine is already installed on it was moved here: it is what it was, `Ready`.
    pub(super) fn adopt(&mut self) {
        let ConsumerRead::Found(machine) = self.facts.consumer else { return };
        let ours = host_view::is_claimed_by(&self.host, machine)
            && machine.spec.provider_id == Some(ProviderId::of(&self.host.metadata.key()));
        if ours {
            self.enter(Cause::Adopted, "");
        }
    }

    /// Weighed before success: when both wait, the failure wins.
    pub(super) fn weigh_provision_failed(&mut self) {
        let Some(signal) = self.bound(SignalKey::ProvisionFailed) else { return };
        let message = failure::reported(&signal.value);
        if self.enter(Cause::ProvisionFailed, &message) || !self.keeps_report() {
            self.consume(signal);
        }
    }

    /// Success is kept until a pass finds the host `Ready`, so that a lost status write loses nothing.
    pub(super) fn weigh_provisioned(&mut self) {
        let Some(signal) = self.bound(SignalKey::Provisioned) else { return };
        if signal.value != "provisioned" {
            return self.drop_signal(signal, "has an unknown value");
        }
        if self.enter(Cause::Provisioned, "") {
            self.look_again = true;
        } else if !self.keeps_report() {
            self.consume(signal);
        }
    }

    /// Whether an agent's result is kept for later: its report is in, or waits to be taken, and nobody has
    /// decided on the hardware yet.
    fn keeps_report(&self) -> bool {
        let waiting =
            self.signals.iter().any(|(s, v)| s.key == SignalKey::InspectionResult && *v != Verdict::Rejected);
        let undecided = matches!(self.state(), HostState::Inspecting | HostState::InUse)
            || (self.state() == HostState::Error && !host_view::run_failed(&self.host));
        let received = host_view::report_in(&self.host.status) || waiting;
        self.claimed() && undecided && received
    }

    /// `inspect`, `inspect-complete` and `timeout`; each but where the table has it is consumed without effect.
    pub(super) fn weigh_request(&mut self) {
        let Some(signal) = self.bound(SignalKey::InspectionRequest) else { return };
        self.consume(signal);
        let now = self.now();
        match signal.value.as_str() {
            "inspect" => {
                if self.enter(Cause::Inspect, "") {
                    self.begin_inspection();
                }
            }
            "inspect-complete" => {
                if self.enter(Cause::InspectComplete, "") {
                    self.host.status.deploying_timestamp.get_or_insert(now);
                }
            }
            "timeout" => {
                if self.enter(Cause::Timeout, failure::INSPECTION_TIMED_OUT) {
                    self.host.status.inspection_phase = Some(InspectionPhase::Timeout);
                }
            }
            _ => self.notes.push(format!("{}: unknown inspection request dropped", self.host.metadata.key())),
        }
    }

    /// The run starts. A report of this very run may be in already: the machine was booted before its request
    /// was seen, or a BMC fault came between.
    fn begin_inspection(&mut self) {
        let run = self.facts.credentials.bound(&self.host).ok().map(|c| c.run.clone());
        let now = self.now();
        let same_run = run.is_some() && self.host.status.run == run;
        let reported = same_run && host_view::report_in(&self.host.status);
        let status = &mut self.host.status;
        if !same_run {
            status.inspection_timestamp = None;
            status.deploying_timestamp = None;
        }
        status.inspection_timestamp.get_or_insert(now);
        status.run = run;
        if reported {
            status.inspection_phase = Some(InspectionPhase::Complete);
            return;
        }
        status.inspection_phase = Some(InspectionPhase::Booting);
        if condition::get(&status.conditions, reasons::HOST_INSPECTED)
            .is_some_and(|c| c.status == Truth::True)
        {
            let text = "A new run has begun";
            self.set_condition(reasons::HOST_INSPECTED, Truth::False, reasons::HOST_RELEASED, text);
        }
    }

    /// Hashes for people to see, and where agents call.
    pub(super) fn mirror_credentials(&mut self) {
        credentials::mirror(&mut self.host.status.bootstrap, self.facts.credentials, self.facts.host);
        let url = self.facts.callback_url;
        if self.claimed() && !url.is_empty() {
            let bootstrap = self.host.status.bootstrap.get_or_insert_default();
            url.clone_into(&mut bootstrap.url);
        }
    }

    /// Takes the waiting report into status, before anything about it is removed.
    pub(super) fn take_report(&mut self) {
        let Some(signal) = self.bound(SignalKey::InspectionResult) else { return };
        self.consume(signal);
        let run = self.facts.credentials.bound(&self.host).ok().map(|c| c.run.clone());
        // The first report of a run is the one the machine decides on; a repeated one changes nothing.
        let repeated = host_view::report_in(&self.host.status) && self.host.status.run == run;
        let done = self.state() == HostState::Ready || host_view::run_failed(&self.host);
        if repeated || done {
            return;
        }
        let Some(text) = signal.report.as_deref() else {
            return self
                .notes
                .push(format!("{}: inspection result without a report", self.host.metadata.key()));
        };
        let Ok(mut report) = InspectionReport::from_json(text.as_bytes()) else {
            return self
                .notes
                .push(format!("{}: inspection report is not valid JSON", self.host.metadata.key()));
        };
        let now = self.now();
        report.timestamp.get_or_insert(now);
        let status = &mut self.host.status;
        if status.run != run {
            status.inspection_timestamp = None;
            status.deploying_timestamp = None;
            status.run = run;
        }
        status.inspection_report = Some(report);
        status.inspection_phase = Some(InspectionPhase::Complete);
        self.set_condition(reasons::HOST_INSPECTED, Truth::True, reasons::HOST_INSPECTED, "The report is in");
    }

    /// Notes what the BMC said. A fault moves only a host without a run: what runs, ran or failed by itself
    /// is not the BMC's to change.
    pub(super) fn observe_bmc(&mut self) {
        if let BmcObservation::Up(seen) = self.facts.bmc {
            self.set_condition(
                reasons::REDFISH_CONNECTION_READY,
                Truth::True,
                reasons::REDFISH_CONNECTED,
                "The BMC answers",
            );
            let status = &mut self.host.status;
            if let Some(power) = seen.power {
                power.as_str().clone_into(&mut status.observed_power_state);
            }
            if let Some(details) = &seen.details {
                status.hardware_details = Some(details.clone());
            }
            if let Some(addresses) = &seen.addresses {
                status.addresses.clone_from(addresses);
            }
        } else if let Some(fault) = self.facts.bmc.fault(self.facts.clock.timings) {
            self.set_condition(reasons::REDFISH_CONNECTION_READY, Truth::False, fault.reason, &fault.message);
            self.apply_fault(&fault.message);
        }
    }

    fn apply_fault(&mut self, message: &str) {
        if host_view::in_provisioning_substate(&self.host) {
            return;
        }
        if self.state() == HostState::Error {
            message.clone_into(&mut self.host.status.error_message);
            self.host.status.ready = false;
        } else {
            self.enter(Cause::Fault, message);
        }
    }

    fn deadline(&self) -> Option<(Cause, Deadline)> {
        let (status, clock) = (&self.host.status, &self.facts.clock);
        if !self.claimed() || consumer_paused(self.facts) {
            return None;
        }
        match status.state {
            HostState::Deploying => {
                let began = status.deploying_timestamp?;
                Some((Cause::DeploymentOverdue, clock.deployment(&self.host, began)))
            }
            HostState::Inspecting if host_view::report_in(status) => {
                let taken = condition::get(&status.conditions, reasons::HOST_INSPECTED)?.last_transition_time;
                let began = status.inspection_timestamp.unwrap_or(taken).max(taken);
                Some((Cause::InspectionOverdue, clock.decision(began)))
            }
            HostState::Inspecting => {
                Some((Cause::InspectionOverdue, clock.inspection_by_host(status.inspection_timestamp?)))
            }
            _ => None,
        }
    }

    /// Every state with a run leaves by itself, even when its machine is gone.
    pub(super) fn check_deadlines(&mut self) {
        if !self.claimed() {
            return;
        }
        // A run without its timestamp would never end; old releases and lost status leave such hosts.
        let now = self.now();
        let status = &mut self.host.status;
        match status.state {
            HostState::Inspecting => status.inspection_timestamp = status.inspection_timestamp.or(Some(now)),
            HostState::Deploying => status.deploying_timestamp = status.deploying_timestamp.or(Some(now)),
            _ => {}
        }
        if let Some((cause, deadline)) = self.deadline()
            && deadline.passed(now)
            && self.enter(cause, &deadline.message)
            && cause == Cause::InspectionOverdue
        {
            self.host.status.inspection_phase = Some(InspectionPhase::Timeout);
        }
    }

    /// Follows the claim, once the BMC is known to answer; known to fail, a released host waits in `Error`.
    pub(super) fn settle_claim(&mut self) {
        if self.claimed() {
            let text =
                self.host.spec.consumer_ref.as_ref().map(|c| format!("Claimed by {} {}", c.kind, c.name));
            let text = text.unwrap_or_default();
            self.set_condition(reasons::HOST_AVAILABLE, Truth::False, reasons::HOST_CLAIMED, &text);
        }
        let connection = condition::get(&self.host.status.conditions, reasons::REDFISH_CONNECTION_READY);
        match connection.map(|c| (c.status, c.message.clone())) {
            Some((Truth::True, _)) => {
                let cause = if self.claimed() { Cause::Claimed } else { Cause::Answered };
                self.enter(cause, "");
            }
            Some((Truth::False, message)) => self.apply_fault(&message),
            Some((Truth::Unknown, _)) | None => {}
        }
        if !self.claimed() && self.state() == HostState::Available {
            self.host.status.ready = true;
            let text = "The host is free";
            self.set_condition(reasons::HOST_AVAILABLE, Truth::True, reasons::HOST_AVAILABLE, text);
        }
    }

    /// Keeps the token of a deployment alive that outlasts its plain lifetime by making progress.
    pub(super) fn renew_token(&mut self) {
        let clock = &self.facts.clock;
        let (HostState::Deploying, Some(began)) = (self.state(), self.host.status.deploying_timestamp) else {
            return;
        };
        let moving = clock.progress.is_some_and(|p| {
            self.host.status.run.as_ref() == Some(&p.run)
                && self.now().since(p.advanced_at) < clock.timings.stall_timeout
        });
        let Ok(credentials) = self.facts.credentials.bound(&self.host) else { return };
        let limit = began + clock.timings.deployment_cap + clock.timings.token_grace;
        if moving && let Some(renewed) = credentials.renewed(self.now(), limit, clock.timings) {
            self.others.push(HostEffect::RenewToken(Box::new(renewed)));
        }
    }

    /// Status first, then everything that is only true once it is written.
    pub(super) fn finish(self) -> HostDecision {
        let timings = self.facts.clock.timings;
        let changed = self.host.status != self.facts.host.status;
        let unknown =
            condition::get(&self.host.status.conditions, reasons::REDFISH_CONNECTION_READY).is_none();
        let waits_for_bmc = unknown || self.state() == HostState::New;
        let ask_bmc_now = *self.facts.bmc == BmcObservation::NotAsked
            && (waits_for_bmc || (changed && self.facts.host.status.state != self.state()));
        let mut requeue = self.facts.bmc.ask_again(self.facts.bmc_failures, timings);
        if let Some((_, deadline)) = self.deadline() {
            requeue = requeue.min(deadline.ends.since(self.now()).max(timings.soon));
        }
        // A run is looked at regularly even while the back-off of its BMC grows.
        if matches!(self.state(), HostState::Inspecting | HostState::Deploying) {
            requeue = requeue.min(timings.healthy).min(timings.token_renew_below / 3);
        }
        if self.look_again || !self.removals.is_empty() {
            requeue = timings.soon;
        }
        let write = changed.then_some(HostEffect::WriteStatus);
        let effects = write.into_iter().chain(self.removals).chain(self.others).chain(self.history).collect();
        HostDecision { status: self.host.status, effects, requeue, ask_bmc_now, notes: self.notes }
    }
}
