//! Plants what makes the installed system this machine's own: its user-data and its provider id.

mod cos_oem;
mod error;
mod ext;
mod mount;
mod plant;

#[cfg(test)]
mod tests;

pub use cos_oem::CosOem;
pub use error::SeedError;

use crate::disk::Target;

/// A way of handing user-data and provider id to the installed system.
pub trait Seed: Send + Sync {
    /// Plants them on the target disk, and on no other. All or nothing.
    ///
    /// # Errors
    /// When the disk has no place for them, or they cannot be made durable there.
    fn plant(&self, target: &dyn Target) -> Result<(), SeedError>;
}
