//! The farrier command: the controller that owns every host's lifecycle, and its command line.

pub mod admin;
pub mod bmc;
pub mod boot;
pub mod callback;
pub mod cli;
pub mod clock;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
pub mod images;
pub mod listen;
pub mod progress;
pub mod reconcile;
pub mod serve;
pub mod store;
pub mod tls;

#[cfg(test)]
mod fixture;
