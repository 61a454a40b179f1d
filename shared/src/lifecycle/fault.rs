//! What a pass learnt of a BMC, and what each kind of fault means for the host.

use std::fmt;
use std::time::Duration;

use super::reasons;
use super::timing::{Timings, spoken};
use crate::resource::host::{Address, HardwareDetails};

/// A fault of the network or of the BMC's front door that passes by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transient {
    /// The name does not resolve.
    Dns,
    /// No answer in time.
    TimedOut,
    /// Nobody listens.
    Refused,
    /// The connection broke.
    Reset,
    /// No route.
    HostUnreachable,
    /// Any other failure of the network.
    Network,
    /// The connection ended before the answer.
    Closed,
    /// 502, 503 or 504.
    Http(u16),
}

impl fmt::Display for Transient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dns => f.write_str("DNS lookup failed"),
            Self::TimedOut => f.write_str("timed out"),
            Self::Refused => f.write_str("connection refused"),
            Self::Reset => f.write_str("connection reset"),
            Self::HostUnreachable => f.write_str("host unreachable"),
            Self::Network => f.write_str("network error"),
            Self::Closed => f.write_str("connection closed"),
            Self::Http(status) => write!(f, "HTTP {status}"),
        }
    }
}

impl Transient {
    /// The class of an HTTP status, when that status passes by itself.
    pub fn of_status(status: u16) -> Option<Self> {
        matches!(status, 502..=504).then_some(Self::Http(status))
    }
}

/// Why the BMC may not be asked at all; found before a client exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// The Secret does not allow its credentials to go to this address in this way.
    CredentialsNotAuthorized,
    /// The Secret, its `username` or its `password` is missing.
    MissingCredentials,
    /// `insecureSkipVerify` together with a CA.
    InsecureCaBundleConflict,
    /// The CA's Secret is missing or empty.
    CaBundleFetchFailed,
}

impl Refusal {
    /// The condition reason.
    pub fn reason(self) -> &'static str {
        match self {
            Self::CredentialsNotAuthorized => reasons::CREDENTIALS_NOT_AUTHORIZED,
            Self::MissingCredentials => reasons::MISSING_CREDENTIALS,
            Self::InsecureCaBundleConflict => reasons::INSECURE_CA_BUNDLE_CONFLICT,
            Self::CaBundleFetchFailed => reasons::CA_BUNDLE_FETCH_FAILED,
        }
    }
}

/// Why asking the BMC failed for a reason that does not pass by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Failure {
    /// Certificate, bad address, no ComputerSystem.
    Connection,
    /// 401 or 403: the BMC refuses the login.
    Login,
    /// An answer that cannot be used.
    Query,
}

impl Failure {
    /// The condition reason.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Connection | Self::Login => reasons::REDFISH_CONNECTION_FAILED,
            Self::Query => reasons::REDFISH_QUERY_FAILED,
        }
    }
}

/// What a healthy BMC told. Parts that could not be read are absent and change nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BmcFacts {
    /// Power state, `On` or `Off`.
    pub power: Option<PowerState>,
    /// Hardware details.
    pub details: Option<HardwareDetails>,
    /// Addresses of the host's interfaces.
    pub addresses: Option<Vec<Address>>,
}

/// Whether a server is powered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PowerState {
    /// Powered.
    On,
    /// Not powered.
    Off,
}

impl PowerState {
    /// The state as Redfish and `status.observedPowerState` spell it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::On => "On",
            Self::Off => "Off",
        }
    }
}

/// What this pass knows of the BMC.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum BmcObservation {
    /// Not asked in this pass: what the condition says still holds.
    #[default]
    NotAsked,
    /// May not be asked.
    Refused {
        /// Which rule refuses.
        refusal: Refusal,
        /// For people; never a secret, never the value of an annotation.
        message: String,
    },
    /// Does not answer; will be asked again soon.
    Unreachable {
        /// How it does not answer.
        class: Transient,
    },
    /// Answered or failed in a way that does not pass by itself.
    Failed {
        /// Which part failed.
        failure: Failure,
        /// For people; never a secret.
        message: String,
    },
    /// Answered.
    Up(BmcFacts),
}

/// A fault as the host's condition shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) reason: &'static str,
    pub(super) message: String,
}

/// Whether a fault of this reason is waited out however long it lasts: nobody answers, or the operator has not
/// consented yet.
pub(super) fn is_waited_out(reason: &str) -> bool {
    [reasons::BMC_UNREACHABLE, reasons::CREDENTIALS_NOT_AUTHORIZED].contains(&reason)
}

impl BmcObservation {
    /// The fault this observation is, if it is one.
    pub(super) fn fault(&self, timings: &Timings) -> Option<Fault> {
        match self {
            Self::NotAsked | Self::Up(_) => None,
            Self::Refused { refusal, message } => {
                Some(Fault { reason: refusal.reason(), message: message.clone() })
            }
            Self::Unreachable { class } => Some(Fault {
                reason: reasons::BMC_UNREACHABLE,
                message: format!(
                    "BMC unreachable ({class}); retrying every {}",
                    spoken(timings.bmc_unreachable)
                ),
            }),
            Self::Failed { failure, message } => {
                Some(Fault { reason: failure.reason(), message: message.clone() })
            }
        }
    }

    /// When to ask again, after this many failures in a row (this one included).
    pub fn ask_again(&self, failures: u32, timings: &Timings) -> Duration {
        match self {
            Self::NotAsked | Self::Up(_) => timings.healthy,
            Self::Unreachable { .. } => timings.bmc_unreachable,
            Self::Refused {
                refusal: Refusal::CredentialsNotAuthorized | Refusal::InsecureCaBundleConflict,
                ..
            } => timings.bmc_unauthorized,
            // A right password is taken up at once: its Secret's change asks anew.
            Self::Failed { failure: Failure::Login, .. } => timings.login_backoff(failures.max(1)),
            Self::Refused { .. } | Self::Failed { .. } => timings.backoff(failures.max(1)),
        }
    }
}
