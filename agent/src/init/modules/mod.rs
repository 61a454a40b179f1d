//! Kernel modules: finds the drivers of whatever hardware is there, and loads them.

mod coldplug;
mod index;
mod pattern;

pub use coldplug::{Coldplug, Insert, Kernel};
pub use index::Index;
