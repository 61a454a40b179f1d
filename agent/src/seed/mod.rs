//! Plants what makes the installed system this machine's own.

mod cos_oem;
mod error;

pub use cos_oem::CosOem;
pub use error::SeedError;

use crate::disk::Target;

/// A way of handing user-data and provider id to the installed system.
pub trait Seed: Send + Sync {
    /// Plants them on the target disk, and on no other.
    fn plant(&self, target: &dyn Target) -> Result<(), SeedError>;
}
