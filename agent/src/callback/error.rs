//! Why a callback did not get through. Names the call and the controller's address, never a path or a secret.

use std::time::Duration;

/// A callback that did not get through.
#[derive(Debug, thiserror::Error)]
pub enum CallbackError {
    /// The CA bundle of the command line holds no usable certificate.
    #[error("beskar7.ca holds no usable PEM certificate ({cause}); check the controller's ca.crt")]
    Ca {
        /// What the parser said.
        cause: String,
    },
    /// The HTTP client cannot be made.
    #[error("the HTTPS client cannot be set up: {cause}")]
    Setup {
        /// What failed.
        cause: String,
    },
    /// The controller's certificate was refused. Never retried: waiting mends no certificate.
    #[error("{call}: the certificate of {controller} was refused: {cause}; check beskar7.ca and the clock")]
    Tls {
        /// Which call.
        call: &'static str,
        /// Host and port.
        controller: String,
        /// The verifier's verdict.
        cause: String,
    },
    /// The controller answered with a status that a retry does not change.
    #[error("{call}: {controller} answered HTTP {status}")]
    Refused {
        /// Which call.
        call: &'static str,
        /// Host and port.
        controller: String,
        /// The status.
        status: u16,
    },
    /// Every attempt failed.
    #[error("{call}: {attempts} attempts at {controller} failed, the last with {cause}")]
    Exhausted {
        /// Which call.
        call: &'static str,
        /// Host and port.
        controller: String,
        /// How many were made.
        attempts: u32,
        /// The last failure.
        cause: String,
    },
    /// The user-data is larger than the contract allows.
    #[error("bootstrap: {controller} served more than {limit} bytes of user-data")]
    TooLarge {
        /// Host and port.
        controller: String,
        /// Most bytes taken.
        limit: usize,
    },
    /// The user-data did not appear in time.
    #[error("bootstrap: no user-data from {controller} within {waited:?}; last answer: {cause}")]
    NoUserData {
        /// Host and port.
        controller: String,
        /// How long was waited.
        waited: Duration,
        /// The last failure.
        cause: String,
    },
}

/// The innermost cause of an HTTP client's error: the outer ones repeat the URL, whose path may hold secrets.
pub(crate) fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
