//! The part of a host's pass that weighs signals: the agent's results, the machine's requests, the report.

use super::failure;
use super::host::HostEffect;
use super::host_pass::Pass;
use super::host_table::Cause;
use super::host_view;
use super::reasons;
use super::signal::{Signal, SignalKey};
use super::verdict::Verdict;
use crate::contract::report::InspectionReport;
use crate::resource::HostState;
use crate::resource::condition::Truth;
use crate::resource::host::InspectionPhase;

impl<'a> Pass<'a> {
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

    pub(super) fn drop_signal(&mut self, signal: &Signal, why: &str) {
        self.removals.push(HostEffect::RemoveSignal(signal.clone()));
        self.notes.push(format!("{}: {} {why}", self.host.metadata.key(), signal.key.annotation()));
    }

    fn consume(&mut self, signal: &Signal) {
        self.removals.push(HostEffect::RemoveSignal(signal.clone()));
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
        self.forget_inspection();
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
}
