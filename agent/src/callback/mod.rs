//! The agent's side of the controller's callback API: one client that trusts the pinned CA alone.

mod client;
mod error;
mod retry;

pub use client::{Client, UserData};
pub use error::CallbackError;
pub use retry::Policy;
