//! A pass over a host under way: what it works on, what goes with entering a state, and how it ends.

use super::credentials;
use super::fault::BmcObservation;
use super::host::{ConsumerRead, HostDecision, HostEffect, HostFacts};
use super::host_table::{self, Cause, Guard};
use super::host_view;
use super::reasons;
use super::signal::Signal;
use super::verdict::{Verdict, verdict};
use crate::contract::provider_id::ProviderId;
use crate::contract::time::Time;
use crate::resource::condition::{self, Truth};
use crate::resource::{HostState, PhysicalHost};

/// The pass under way.
pub(super) struct Pass<'a> {
    pub(super) facts: &'a HostFacts<'a>,
    /// The host as it will be: status changes as the pass goes on.
    pub(super) host: PhysicalHost,
    pub(super) signals: Vec<(&'a Signal, Verdict)>,
    pub(super) history: Vec<HostEffect>,
    pub(super) removals: Vec<HostEffect>,
    pub(super) others: Vec<HostEffect>,
    pub(super) notes: Vec<String>,
    pub(super) look_again: bool,
}

impl<'a> Pass<'a> {
    pub(super) fn new(facts: &'a HostFacts<'a>) -> Self {
        Self {
            facts,
            host: facts.host.clone(),
            signals: judge(facts, facts.host),
            history: Vec::new(),
            removals: Vec::new(),
            others: Vec::new(),
            notes: Vec::new(),
            look_again: false,
        }
    }

    pub(super) fn now(&self) -> Time {
        self.facts.clock.now
    }

    pub(super) fn state(&self) -> HostState {
        self.host.status.state
    }

    pub(super) fn claimed(&self) -> bool {
        host_view::is_claimed(&self.host)
    }

    /// Asks the table; everything that goes with entering a state is the caller's.
    pub(super) fn enter(&mut self, cause: Cause, message: &str) -> bool {
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

    pub(super) fn set_condition(&mut self, kind: &str, status: Truth, reason: &str, message: &str) {
        let now = self.now();
        condition::set(&mut self.host.status.conditions, kind, status, reason, message, now);
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
        let had_run = self.forget_run();
        let inspected = condition::get(&self.host.status.conditions, reasons::HOST_INSPECTED).is_some();
        if had_run || inspected {
            self.set_condition(
                reasons::HOST_INSPECTED,
                Truth::False,
                reasons::HOST_RELEASED,
                "The host was released",
            );
        }
        if had_run || self.state() == HostState::InUse {
            self.others.push(HostEffect::ForgetBoot);
        }
        for (signal, _) in std::mem::take(&mut self.signals) {
            self.drop_signal(signal, "waits on a host nobody claims");
        }
    }

    /// Takes everything of a run out of status but the report and its condition; whether there was anything.
    fn forget_run(&mut self) -> bool {
        let status = &mut self.host.status;
        status.run.take().is_some()
            | status.inspection_timestamp.take().is_some()
            | status.deploying_timestamp.take().is_some()
            | status.inspection_phase.take().is_some()
    }

    /// A host that accepted a run just as the machine was booted for another one is as good as not told of its
    /// boot yet: it takes what the new run's machine and agent say from there. Left in the old run it would
    /// reject all of that until its deadline, although agents were told that their reports are in.
    pub(super) fn leave_replaced_run(&mut self) {
        let replaced = host_view::run_replaced(&self.host, self.facts.credentials);
        if replaced && self.enter(Cause::RunReplaced, "") {
            self.forget_run();
            self.forget_inspection();
            self.signals = judge(self.facts, &self.host);
        }
    }

    /// The report at hand, if any, is that of an earlier run.
    pub(super) fn forget_inspection(&mut self) {
        let inspected = condition::get(&self.host.status.conditions, reasons::HOST_INSPECTED);
        if inspected.is_some_and(|c| c.status == Truth::True) {
            let text = "A new run has begun";
            self.set_condition(reasons::HOST_INSPECTED, Truth::False, reasons::HOST_RELEASED, text);
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

    /// Hashes for people to see, and where agents call.
    pub(super) fn mirror_credentials(&mut self) {
        credentials::mirror(&mut self.host.status.bootstrap, self.facts.credentials, self.facts.host);
        let url = self.facts.callback_url;
        if self.claimed() && !url.is_empty() {
            let bootstrap = self.host.status.bootstrap.get_or_insert_default();
            url.clone_into(&mut bootstrap.url);
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

fn judge<'a>(facts: &HostFacts<'a>, host: &PhysicalHost) -> Vec<(&'a Signal, Verdict)> {
    facts.signals.iter().map(|signal| (signal, verdict(host, facts.credentials, signal))).collect()
}
