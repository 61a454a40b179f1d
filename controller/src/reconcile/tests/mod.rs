//! The reconcilers over a real store, fake BMCs and a paused clock.

mod adoption;
mod bmc_faults;
mod clock;
mod fleet;
mod growth;
mod paused;
mod runs;
mod scale;
mod stale;
mod trouble;
mod waking;
