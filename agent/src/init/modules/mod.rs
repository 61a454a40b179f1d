//! Kernel modules: finds the drivers of whatever hardware is there, and loads them.

mod coldplug;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod index;
mod pattern;

pub use coldplug::{Coldplug, Insert, Kernel, LATER};
pub use index::Index;
