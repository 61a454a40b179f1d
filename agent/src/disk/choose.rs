//! choice
use farrier_shared::contract::DiskPin;
use super::{Disk, DiskError, Roots};
/// The disk to write: the pinned one, else the smallest eligible of at least `required` bytes.
pub fn choose(disks: &[Disk], pin: Option<&DiskPin>, required: u64, roots: &Roots) -> Result<Disk, DiskError> { todo!() }
