//! Streams an image onto a disk: fetch, hash, decode, write, verify; all of it or nothing bootable.

mod error;
mod fetch;
mod install;
mod progress;

pub use error::DeployError;
pub use fetch::{ImageClient, ImageFacts};
pub use install::{Order, Outcome, Verify, install};
pub use progress::{Progress, Sampler, Snapshot, Step};
