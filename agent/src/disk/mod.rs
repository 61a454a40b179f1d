//! Finds the machine's disks, tells them apart for good, picks the one to write, and guards it.

mod choose;
mod device;
mod discover;
mod error;
mod identity;

pub use choose::choose;
pub use device::{BlockDevice, KernelTarget, Target};
pub use discover::{Disk, Roots, discover};
pub use error::DiskError;
pub use identity::Identity;
