//! Why a call to a BMC failed, sorted by what helps: waiting, or a person.

use farrier_shared::lifecycle::fault::{BmcObservation, Failure, Transient};

/// Why a call to a BMC failed. Holds no credentials, no user name and nothing the BMC sent but identifiers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BmcError {
    /// Passes by itself.
    #[error("BMC {authority} does not answer while asked to {action}: {class}")]
    Unreachable {
        /// Host and port.
        authority: String,
        /// What was being done.
        action: String,
        /// How it fails.
        class: Transient,
    },
    /// Does not pass by itself.
    #[error("BMC {authority} failed to {action}: {reason}")]
    Failed {
        /// Host and port.
        authority: String,
        /// What was being done.
        action: String,
        /// Whether a connection could not be had, or a question was not answered.
        failure: Failure,
        /// What was expected, what was found, and what to do.
        reason: String,
        /// The HTTP status, when there was an answer.
        status: Option<u16>,
    },
}

impl BmcError {
    /// What a host's pass makes of it.
    pub fn observation(&self) -> BmcObservation {
        match self {
            Self::Unreachable { class, .. } => BmcObservation::Unreachable { class: *class },
            Self::Failed { failure, .. } => {
                BmcObservation::Failed { failure: *failure, message: self.to_string() }
            }
        }
    }

    /// Which kind of failure it is; none of what passes by itself.
    pub(super) fn failure(&self) -> Option<Failure> {
        match self {
            Self::Failed { failure, .. } => Some(*failure),
            Self::Unreachable { .. } => None,
        }
    }

    /// Whether what was asked for may have been done all the same.
    pub(super) fn outcome_unknown(&self) -> bool {
        use Transient::{Closed, Http, Network, Reset, TimedOut};
        matches!(self, Self::Unreachable { class: TimedOut | Reset | Closed | Network | Http(502 | 504), .. })
    }

    /// The HTTP status of the answer, if there was one.
    pub(super) fn status(&self) -> Option<u16> {
        match self {
            Self::Failed { status, .. } => *status,
            Self::Unreachable { class: Transient::Http(status), .. } => Some(*status),
            Self::Unreachable { .. } => None,
        }
    }
}
