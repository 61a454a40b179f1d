//! The agent's side of the controller's callback API: one client that trusts the pinned CA alone.

mod client;
mod error;
mod retry;

#[cfg(test)]
mod tests;

pub use client::{Client, UserData};
pub use error::CallbackError;
pub(crate) use error::root_cause;
pub use retry::Policy;
pub(crate) use retry::back_off;
