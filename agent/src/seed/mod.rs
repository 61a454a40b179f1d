//! Plants what makes the installed system this machine's own: its user-data and its provider id.
//!
//! Where depends on who will read it: one file for each of the ways of [`SeedKind`]. `place` looks at what the
//! image brought, `plant` writes durably.

mod config_drive;
mod cos_oem;
mod error;
mod filesystem;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod ignition;
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

use self::filesystem::Kind;
use self::place::Place;
use self::plant::SeedFile;
use crate::disk::Target;
use crate::mount::{Access, Driver, MountError, Mounted};

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
    let mounted = mount(place, work, Access::Write)?;
    plant::plant(&mounted.path, files)
        .map_err(|error| SeedError::io("writing", &error.path)(error.source))?;
    unmount(mounted, place)?;
    tracing::info!(partition = place.partition.name, "user-data and provider id are in place");
    Ok(())
}

fn mount(place: &Place, work: &Path, access: Access) -> Result<Mounted, SeedError> {
    let kind = place.filesystem.as_ref().map(|f| f.kind);
    let driver = match kind {
        Some(Kind::Fat) => Driver::Fat,
        Some(Kind::Btrfs) => Driver::Btrfs,
        Some(Kind::Ext) | None => Driver::Ext4,
    };
    Mounted::new(&place.partition, driver, work, access).map_err(|error| not_mounted(place, error))
}

fn unmount(mounted: Mounted, place: &Place) -> Result<(), SeedError> {
    mounted.unmount().map_err(|error| not_mounted(place, error))
}

/// What a refused mount comes from, where that can be told.
fn not_mounted(place: &Place, error: MountError) -> SeedError {
    let partition = place.partition.name.clone();
    match (place.filesystem.as_ref().and_then(|f| f.sector), error.disk_sector) {
        (Some(sector), Some(disk)) if sector < disk => SeedError::SectorSize { partition, sector, disk },
        _ => SeedError::io(error.action, &partition)(error.source),
    }
}
