//! Plants what makes the installed system this machine's own: its user-data and its provider id.
//!
//! Where depends on who will read it: one file for each of the ways of [`SeedKind`]. `place` looks at what the
//! image brought, `mount` and `plant` write durably.

mod config_drive;
mod cos_oem;
mod error;
mod filesystem;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod ignition;
mod mount;
mod nocloud;
mod payload;
mod place;
mod plant;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use config_drive::ConfigDrive;
pub use cos_oem::CosOem;
pub use error::SeedError;
pub use ignition::Ignition;
pub use nocloud::NoCloud;
pub use payload::Payload;

use farrier_shared::contract::options::SeedKind;

use self::mount::{Access, Mounted};
use self::place::Place;
use self::plant::SeedFile;
use crate::disk::Target;

/// Where the provider id lies, below the root of the file system.
const PROVIDER_ID: &str = "beskar7/provider-id";

/// A way of handing user-data and provider id to the installed system.
pub trait Seed: Send + Sync {
    /// Plants them on the target disk, and on no other. All or nothing.
    ///
    /// # Errors
    /// When the disk has no place for them, or they cannot be made durable there.
    fn plant(&self, target: &dyn Target) -> Result<(), SeedError>;
}

/// The seed of this kind; `work` is a writable directory on a tmpfs, such as `/run`.
///
/// # Errors
/// When the user-data cannot be read by whom it is for, as far as that is known without a disk.
pub fn seed(kind: SeedKind, payload: Payload, work: PathBuf) -> Result<Arc<dyn Seed>, SeedError> {
    Ok(match kind {
        SeedKind::CosOem => Arc::new(CosOem::new(payload, work)),
        SeedKind::NoCloud => Arc::new(NoCloud::new(payload, work)),
        SeedKind::ConfigDrive => Arc::new(ConfigDrive::new(payload, work)),
        SeedKind::Ignition => Arc::new(Ignition::new(payload, work)?),
    })
}

/// Writes files into one file system.
fn write(place: &Place, work: &Path, files: &[SeedFile<'_>]) -> Result<(), SeedError> {
    let mounted = Mounted::new(place, work, Access::Write)?;
    plant::plant(&mounted.path, files)
        .map_err(|error| SeedError::io("writing", &error.path)(error.source))?;
    mounted.unmount()?;
    tracing::info!(partition = place.partition.name, "user-data and provider id are in place");
    Ok(())
}
