//! The reconcilers over a real store, fake BMCs and a paused clock.

mod adoption;
mod fleet;
mod runs;
mod scale;
mod trouble;
