//! The status of a machine while a pass works on it, and the summary of its conditions.

use std::time::Duration;

use super::machine::{MachineDecision, MachineEffect, MachineFacts};
use super::reasons;
use crate::contract::time::Time;
use crate::resource::condition::{self, Truth};
use crate::resource::machine::{Beskar7MachineStatus, MachinePhase};

/// A status under work.
pub(super) struct Draft {
    pub(super) status: Beskar7MachineStatus,
    old: Beskar7MachineStatus,
    now: Time,
    pub(super) notes: Vec<String>,
}

impl Draft {
    pub(super) fn new(facts: &MachineFacts<'_>) -> Self {
        let old = facts.machine.status.clone();
        let mut status = old.clone();
        for condition in &mut status.conditions {
            if condition.reason.is_empty() {
                condition.reason = "Unknown".to_owned();
            }
        }
        Self { status, old, now: facts.clock.now, notes: Vec::new() }
    }

    /// Goes on with a status that was decided already.
    pub(super) fn resume(decided: Beskar7MachineStatus, now: Time) -> Self {
        Self { old: decided.clone(), status: decided, now, notes: Vec::new() }
    }

    pub(super) fn set(&mut self, kind: &str, status: Truth, reason: &str, message: &str) {
        condition::set(&mut self.status.conditions, kind, status, reason, message, self.now);
    }

    /// `InfrastructureReady` False: from the claim on there is no gap in it.
    pub(super) fn not_ready(&mut self, reason: &str, message: &str) {
        self.set(reasons::INFRASTRUCTURE_READY, Truth::False, reason, message);
    }

    pub(super) fn phase(&mut self, phase: MachinePhase) {
        self.status.phase = Some(phase);
    }

    /// The machine has failed for good.
    pub(super) fn fail(&mut self, reason: &str, message: &str) {
        self.status.ready = false;
        self.phase(MachinePhase::Failed);
        self.not_ready(reason, message);
    }

    /// Nothing is written.
    pub(super) fn untouched(self, requeue: Duration) -> MachineDecision {
        MachineDecision { status: self.old, effects: Vec::new(), requeue, error: None, notes: self.notes }
    }

    /// One effect, and no status.
    pub(super) fn only(self, effect: MachineEffect, requeue: Duration) -> MachineDecision {
        MachineDecision { effects: vec![effect], ..self.untouched(requeue) }
    }

    /// `before`, the status if it changed, `after`.
    pub(super) fn decide(
        mut self,
        before: Vec<MachineEffect>,
        after: Vec<MachineEffect>,
        requeue: Duration,
    ) -> MachineDecision {
        self.summarise();
        let write = (self.status != self.old).then_some(MachineEffect::WriteStatus);
        let effects = before.into_iter().chain(write).chain(after).collect();
        MachineDecision { status: self.status, effects, requeue, error: None, notes: self.notes }
    }

    /// `Ready` is the worst of the others; a part that is not there yet is not true.
    fn summarise(&mut self) {
        let parts =
            [reasons::INFRASTRUCTURE_READY, reasons::PHYSICAL_HOST_ASSOCIATED, reasons::BOOTSTRAP_DATA_READY];
        let worst = parts.iter().find_map(|kind| match condition::get(&self.status.conditions, kind) {
            Some(c) if c.status == Truth::True => None,
            Some(c) => Some((c.reason.clone(), c.message.clone())),
            None => Some(("NotReported".to_owned(), format!("{kind} is not known yet"))),
        });
        match worst {
            None => self.set(reasons::READY, Truth::True, reasons::READY, ""),
            Some((reason, message)) => self.set(reasons::READY, Truth::False, &reason, &message),
        }
    }
}
