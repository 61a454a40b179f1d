//! Messages of runs that failed, and how to tell them from a BMC's faults.
//!
//! A host's `Error` has one of two causes: its BMC, which mends itself, or its run, which stays failed until
//! the host is released. The contract tells them apart by the message alone, so the messages live here.

use std::time::Duration;

use super::reasons;
use super::timing::spoken;
use crate::contract::callback::FAILURE_PREFIX;

/// Message of a host whose report did not come in time.
pub const INSPECTION_TIMED_OUT: &str = "Inspection timed out";
/// Start of every message of a deployment that ran out of time.
const DEPLOYMENT_PREFIX: &str = "OS deployment ";
/// Start of the message of a report nobody decided on.
const UNDECIDED_PREFIX: &str = "Inspection report not acted on ";

/// A deployment that took too long.
pub fn deployment_timed_out(limit: Duration) -> String {
    format!("{DEPLOYMENT_PREFIX}did not complete within {}", spoken(limit))
}

/// A deployment that stood still.
pub fn deployment_stalled(step: &str, limit: Duration) -> String {
    let step = if step.is_empty() { "unknown" } else { step };
    format!("{DEPLOYMENT_PREFIX}stalled in step {step:?}: no progress for {}", spoken(limit))
}

/// A report that was taken, but whose machine neither accepted nor refused it.
pub fn undecided(limit: Duration) -> String {
    format!("{UNDECIDED_PREFIX}within {}: its machine failed or is gone", spoken(limit))
}

/// The agent's failure, prefixed once.
pub fn reported(reason: &str) -> String {
    if reason.starts_with(FAILURE_PREFIX) { reason.to_owned() } else { format!("{FAILURE_PREFIX}{reason}") }
}

/// Whether this `errorMessage` is that of a failed run.
pub fn is_run_failure(message: &str) -> bool {
    message == INSPECTION_TIMED_OUT
        || [FAILURE_PREFIX, DEPLOYMENT_PREFIX, UNDECIDED_PREFIX].iter().any(|p| message.starts_with(p))
}

/// The machine's terminal reason for a host that failed with this message.
pub fn machine_reason(message: &str) -> &'static str {
    if message == INSPECTION_TIMED_OUT {
        reasons::INSPECTION_TIMED_OUT
    } else if message.starts_with(FAILURE_PREFIX) {
        reasons::DEPLOYMENT_FAILED
    } else if message.starts_with(DEPLOYMENT_PREFIX) {
        reasons::DEPLOYMENT_TIMED_OUT
    } else if message.starts_with(UNDECIDED_PREFIX) {
        reasons::INSPECTION_FAILED
    } else {
        reasons::PHYSICAL_HOST_ERROR
    }
}
