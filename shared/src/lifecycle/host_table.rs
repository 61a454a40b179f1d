//! The transition table of a host: every way its state may change, and nothing else.
//!
//! ```text
//!                 BMC answers                    claimed                 inspect
//!      New ─────────────────────► Available ─────────────► InUse ─────────────────► Inspecting
//!       │ BMC fault                ▲   │ BMC fault           │ BMC fault              │  │ inspect-complete,
//!       ▼                          │   ▼                     ▼          timeout,      │  │ report in
//!     Error ◄──────────────────────┼─ Error ◄─────────────────────────  overdue ◄─────┘  ▼
//!       │                          │   ▲   provision-failed, overdue                  Deploying
//!       │ BMC answers, not claimed │   └──────────────────────────────────────────────┘  │
//!       └──────────────────────────┘                                                     │ provisioned
//!                                  ▲   not claimed any more, BMC answers                 ▼
//!                                  └────────── InUse, Inspecting, Deploying, Ready ◄── Ready
//!
//!      Error ─── claimed, BMC answers, run not failed ──► InUse
//!      Inspecting ─── booted for another run ──► InUse
//!      New, InUse ─── the claiming machine already runs here ──► Ready   (adoption)
//! ```

use super::history::HistoryEntry;
use crate::resource::HostState::{self, Available, Deploying, Error, InUse, Inspecting, New, Ready};
use crate::resource::host::PhysicalHostStatus;

/// What may move a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cause {
    /// The BMC answers and nobody has claimed the host.
    Answered,
    /// The BMC answers and a machine has claimed the host.
    Claimed,
    /// The BMC does not answer, or may not be asked.
    Fault,
    /// The claiming machine is already installed on this host.
    Adopted,
    /// Request `inspect`.
    Inspect,
    /// Request `inspect-complete`.
    InspectComplete,
    /// Request `timeout`.
    Timeout,
    /// The credentials are another run's by now.
    RunReplaced,
    /// The agent reported success.
    Provisioned,
    /// The agent reported failure.
    ProvisionFailed,
    /// The inspection's own deadline passed.
    InspectionOverdue,
    /// The deployment's deadline passed.
    DeploymentOverdue,
}

impl Cause {
    /// Every cause.
    pub const ALL: [Self; 12] = [
        Self::Answered,
        Self::Claimed,
        Self::Fault,
        Self::Adopted,
        Self::Inspect,
        Self::InspectComplete,
        Self::Timeout,
        Self::RunReplaced,
        Self::Provisioned,
        Self::ProvisionFailed,
        Self::InspectionOverdue,
        Self::DeploymentOverdue,
    ];

    /// One CamelCase word, as the history and the table file name it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Answered => "Answered",
            Self::Claimed => "Claimed",
            Self::Fault => "Fault",
            Self::Adopted => "Adopted",
            Self::Inspect => "Inspect",
            Self::InspectComplete => "InspectComplete",
            Self::Timeout => "Timeout",
            Self::RunReplaced => "RunReplaced",
            Self::Provisioned => "Provisioned",
            Self::ProvisionFailed => "ProvisionFailed",
            Self::InspectionOverdue => "InspectionOverdue",
            Self::DeploymentOverdue => "DeploymentOverdue",
        }
    }

    /// Who is behind it, for the history.
    pub fn actor(self) -> &'static str {
        match self {
            Self::Provisioned | Self::ProvisionFailed => "agent",
            Self::Inspect | Self::InspectComplete | Self::Timeout | Self::RunReplaced => "machine",
            _ => "host",
        }
    }
}

/// What must also hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Guard {
    /// Nothing.
    Always,
    /// Nobody has claimed the host.
    Unclaimed,
    /// The present run's report is in.
    ReportIn,
    /// The host's `Error` is not that of a failed run.
    NotRunFailed,
    /// The host's `Error` is a BMC fault over a deployment.
    DeployInterrupted,
}

impl Guard {
    /// Every guard.
    pub const ALL: [Self; 5] =
        [Self::Always, Self::Unclaimed, Self::ReportIn, Self::NotRunFailed, Self::DeployInterrupted];

    /// One CamelCase word, as the table file names it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Always => "Always",
            Self::Unclaimed => "Unclaimed",
            Self::ReportIn => "ReportIn",
            Self::NotRunFailed => "NotRunFailed",
            Self::DeployInterrupted => "DeployInterrupted",
        }
    }
}

/// One row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transition {
    /// State before.
    pub from: HostState,
    /// What happens.
    pub cause: Cause,
    /// What must hold.
    pub guard: Guard,
    /// State after.
    pub to: HostState,
    /// Why there is such a row.
    pub note: &'static str,
}

const fn row(from: HostState, cause: Cause, guard: Guard, to: HostState, note: &'static str) -> Transition {
    Transition { from, cause, guard, to, note }
}

/// Every transition. What is not here does not happen.
pub const TABLE: &[Transition] = &[
    row(New, Cause::Answered, Guard::Always, Available, "enrolled"),
    row(New, Cause::Claimed, Guard::Always, InUse, "claimed before it was looked at"),
    row(New, Cause::Fault, Guard::Always, Error, "the BMC cannot be used"),
    row(New, Cause::Adopted, Guard::Always, Ready, "moved here with its machine installed"),
    row(Available, Cause::Claimed, Guard::Always, InUse, "claimed"),
    row(Available, Cause::Fault, Guard::Always, Error, "the BMC cannot be used"),
    row(InUse, Cause::Answered, Guard::Always, Available, "released"),
    row(InUse, Cause::Fault, Guard::Always, Error, "the BMC cannot be used, nothing is running yet"),
    row(InUse, Cause::Adopted, Guard::Always, Ready, "moved here with its machine installed"),
    row(InUse, Cause::Inspect, Guard::Always, Inspecting, "booted for inspection"),
    row(Inspecting, Cause::Answered, Guard::Always, Available, "released"),
    row(Inspecting, Cause::Fault, Guard::Unclaimed, Error, "released, and the BMC cannot be used"),
    row(Inspecting, Cause::InspectComplete, Guard::ReportIn, Deploying, "the hardware was accepted"),
    row(Inspecting, Cause::Timeout, Guard::Always, Error, "the machine gave up waiting for the report"),
    row(Inspecting, Cause::RunReplaced, Guard::Always, InUse, "booted for another run than the one accepted"),
    row(Inspecting, Cause::InspectionOverdue, Guard::Always, Error, "no report or no decision in time"),
    row(Deploying, Cause::Answered, Guard::Always, Available, "released"),
    row(Deploying, Cause::Fault, Guard::Unclaimed, Error, "released, and the BMC cannot be used"),
    row(Deploying, Cause::Provisioned, Guard::Always, Ready, "installed"),
    row(Deploying, Cause::ProvisionFailed, Guard::Always, Error, "the agent failed"),
    row(Deploying, Cause::DeploymentOverdue, Guard::Always, Error, "too slow, or stalled"),
    row(Ready, Cause::Answered, Guard::Always, Available, "released"),
    row(Ready, Cause::Fault, Guard::Unclaimed, Error, "released, and the BMC cannot be used"),
    row(Error, Cause::Answered, Guard::Always, Available, "the BMC is back, or the failed run was released"),
    row(Error, Cause::Claimed, Guard::NotRunFailed, InUse, "the BMC is back"),
    row(Error, Cause::Provisioned, Guard::DeployInterrupted, Ready, "installed while the BMC was away"),
    row(Error, Cause::ProvisionFailed, Guard::DeployInterrupted, Error, "failed while the BMC was away"),
];

/// The row that applies, if any.
pub fn next(from: HostState, cause: Cause, holds: impl Fn(Guard) -> bool) -> Option<&'static Transition> {
    TABLE.iter().find(|t| t.from == from && t.cause == cause && holds(t.guard))
}

/// Moves the host if the table allows it: the one place that assigns a host's state.
///
/// `message` becomes `errorMessage` in `Error`; in every other state there is none.
pub(super) fn enter(
    status: &mut PhysicalHostStatus,
    cause: Cause,
    message: &str,
    holds: impl Fn(Guard) -> bool,
) -> Option<&'static Transition> {
    let row = next(status.state, cause, holds)?;
    status.state = row.to;
    status.error_message = if row.to == Error { message.to_owned() } else { String::new() };
    match row.to {
        Available | InUse | Ready => status.ready = true,
        Error => status.ready = false,
        New | Inspecting | Deploying => {}
    }
    Some(row)
}

impl Transition {
    /// The history's line about this transition.
    pub(super) fn entry(
        &self,
        at: crate::contract::time::Time,
        reason: &str,
        run: Option<&str>,
    ) -> HistoryEntry {
        HistoryEntry {
            at,
            actor: self.cause.actor().to_owned(),
            event: self.cause.as_str().to_owned(),
            from: self.from.as_str().to_owned(),
            to: self.to.as_str().to_owned(),
            reason: if reason.is_empty() { self.note.to_owned() } else { reason.to_owned() },
            run: run.map(str::to_owned),
        }
    }
}
