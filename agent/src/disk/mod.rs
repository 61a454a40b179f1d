//! Finds the machine's disks, tells them apart for good, picks the one to write, and guards it.
//!
//! [`discover`] lists, [`choose`] decides, [`KernelTarget`] opens what was chosen and proves that it is still
//! that disk, [`wipe`] clears its ends, [`table`] reads and checks partition tables, [`gpt`] completes them.

mod attachment;
mod by_path;
mod choose;
mod device;
mod discover;
mod error;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
pub mod gpt;
mod hints;
mod holders;
mod identity;
mod in_use;
mod inventory;
pub(crate) mod io;
pub mod mbr;
#[cfg(any(test, fuzzing))]
mod memory;
mod multipath;
mod partition;
mod signature;
pub mod table;
mod vpd;
pub mod wipe;

#[cfg(test)]
mod tests;

pub use attachment::Attachment;
pub use choose::{Wish, choose};
pub use device::{ALIGNMENT, Access, BlockDevice, KernelTarget, Target};
pub use discover::{Disk, Refusal, Roots, discover};
pub use error::DiskError;
pub use identity::Identity;
pub use inventory::Inventory;
pub use io::{AlignedBuffer, read_exact, write_all};
pub use partition::Partition;
pub use signature::signatures;
