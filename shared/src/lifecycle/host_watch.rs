//! The part of a host's pass that follows what is observed: the BMC, the clock, the claim.

use super::deadline::Deadline;
use super::fault::{BmcObservation, is_waited_out};
use super::history::HistoryEntry;
use super::host::{HostEffect, consumer_paused};
use super::host_pass::Pass;
use super::host_table::Cause;
use super::host_view;
use super::reasons;
use crate::contract::time::Time;
use crate::resource::HostState;
use crate::resource::condition::{self, Truth};
use crate::resource::host::InspectionPhase;

impl Pass<'_> {
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
            status.bmc_fault_since = None;
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
            // The condition's own time is that of any trouble: a BMC that was away for an hour and then answers with a
            // fault while it starts has had that fault for a moment.
            let since = self.host.status.bmc_fault_since.unwrap_or(self.now());
            self.host.status.bmc_fault_since = (!is_waited_out(fault.reason)).then_some(since);
            self.apply_fault(fault.reason, &fault.message);
        }
    }

    fn apply_fault(&mut self, reason: &str, message: &str) {
        if host_view::in_provisioning_substate(&self.host) {
            return;
        }
        if self.state() == HostState::Error {
            if self.host.status.error_message != message {
                self.tell_other_fault(reason, message);
            }
            message.clone_into(&mut self.host.status.error_message);
            self.host.status.ready = false;
        } else {
            self.enter(Cause::Fault, message);
        }
    }

    /// A host in `Error` has another fault than before. One of another kind goes to the history; another wording of
    /// the same kind only to the log, or a BMC that now refuses and now times out would push out all else.
    fn tell_other_fault(&mut self, reason: &str, message: &str) {
        let known = condition::get(&self.facts.host.status.conditions, reasons::REDFISH_CONNECTION_READY);
        if known.is_some_and(|c| c.status == Truth::False && c.reason == reason) {
            self.notes.push(format!("host {} is still in Error: {message}", self.host.metadata.key()));
            return;
        }
        let state = HostState::Error.as_str();
        self.history.push(HostEffect::Record(HistoryEntry {
            at: self.now(),
            actor: Cause::Fault.actor().to_owned(),
            event: Cause::Fault.as_str().to_owned(),
            from: state.to_owned(),
            to: state.to_owned(),
            reason: message.to_owned(),
            run: self.host.status.run.clone(),
        }));
    }

    pub(super) fn deadline(&self) -> Option<(Cause, Deadline)> {
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
        self.date_run();
        let now = self.now();
        if let Some((cause, deadline)) = self.deadline()
            && deadline.passed(now)
            && self.enter(cause, &deadline.message)
            && cause == Cause::InspectionOverdue
        {
            self.host.status.inspection_phase = Some(InspectionPhase::Timeout);
        }
    }

    /// Sees to it that a run has begun, and not in the future: it would never end. Old releases and lost status leave
    /// hosts without the time, a clock that ran ahead and was set back leaves hosts with such a time.
    fn date_run(&mut self) {
        let (now, clock) = (self.now(), self.facts.clock);
        let status = &mut self.host.status;
        let dated = |time: Option<Time>| time.filter(|t| !clock.ran_ahead(*t)).or(Some(now));
        match status.state {
            HostState::Inspecting => {
                status.inspection_timestamp = dated(status.inspection_timestamp);
                let inspected = status.conditions.iter_mut().find(|c| c.kind == reasons::HOST_INSPECTED);
                if let Some(condition) = inspected {
                    condition.last_transition_time = condition.last_transition_time.min(now);
                }
            }
            HostState::Deploying => status.deploying_timestamp = dated(status.deploying_timestamp),
            _ => {}
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
        match connection.map(|c| (c.status, c.reason.clone(), c.message.clone())) {
            Some((Truth::True, ..)) => {
                let cause = if self.claimed() { Cause::Claimed } else { Cause::Answered };
                self.enter(cause, "");
            }
            Some((Truth::False, reason, message)) => self.apply_fault(&reason, &message),
            Some((Truth::Unknown, ..)) | None => {}
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
}
