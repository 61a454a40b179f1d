//! device
use std::io;
use std::sync::Arc;
use super::{Disk, DiskError, Roots};

/// An open disk.
pub trait BlockDevice: Send + Sync {
    /// Path for messages.
    fn name(&self) -> &str;
}
/// A disk that can be opened, any number of times, and is the same disk each time.
pub trait Target: Send + Sync {
    /// Opens it for writing, for us alone.
    fn open(&self) -> Result<Arc<dyn BlockDevice>, DiskError>;
}
/// A disk of the machine.
#[derive(Clone, Debug)]
pub struct KernelTarget {
    disk: Disk,
    roots: Roots,
}
impl KernelTarget {
    /// This disk.
    pub fn new(disk: Disk, roots: Roots) -> Self { Self { disk, roots } }
}
impl Target for KernelTarget {
    fn open(&self) -> Result<Arc<dyn BlockDevice>, DiskError> { todo!() }
}
