//! Streams an image onto a disk: fetch, hash, decode, write, verify; all of it, or nothing that boots.
//!
//! ```text
//! fetch ──feed──▶ hash ──▶ decode ──blocks──▶ place ──blocks──▶ writer ×4 ──▶ disk
//! (async)  8 MiB                     pool of 20 blocks of 1 MiB
//! ```
//!
//! Each stage has its own thread and waits for the slowest. `place` withholds both ends of the disk: they are
//! written by `finish` after digest, length and decoding have all been found right, and the sectors by which anything
//! finds a partition table last of all, once the seed is in place.
//! Whatever fails after the first write ends in a wipe of both ends.

mod decode;
mod error;
mod feed;
mod fetch;
mod finish;
mod format;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod install;
mod partitions;
mod pipeline;
mod place;
mod progress;
mod stage;
mod write;
mod zeros;

#[cfg(test)]
mod tests;

pub use error::DeployError;
pub use fetch::{ImageClient, ImageFacts, Source, Timing};
pub use install::{Order, Outcome, install};
pub use progress::{Progress, Sampler, Snapshot, Step};
