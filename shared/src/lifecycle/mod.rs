//! The host and machine lifecycles as pure functions over plain data.
//!
//! `(object, credentials, signals, observations, now) → decision`, where a decision is the next status plus a
//! list of effects. Nothing here awaits, locks, logs or reads a clock.

pub mod credentials;
pub mod signal;

pub use credentials::Credentials;
pub use signal::{Signal, SignalKey};
