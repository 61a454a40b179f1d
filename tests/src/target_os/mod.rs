//! The operating system the end-to-end runs install: a real Debian disk image, made from this machine's own
//! package sources, that on first boot says what was planted for it.
//!
//! Made without loop devices, so it works in containers: file systems are filled while they are created.

mod debian;
mod disk;
mod overlay;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::archive;
use crate::partitions::Sector;

/// A disk image and its compressed copy.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DiskImage {
    /// Sectors of the disks it is for.
    pub sector: Sector,
    /// The whole disk, raw.
    pub raw: PathBuf,
    /// The same as one zstd frame.
    pub zstd: PathBuf,
    /// `sha256:` digest of [`zstd`](Self::zstd).
    pub zstd_digest: String,
}

/// The built images.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TargetOs {
    /// For disks with 512-byte sectors; boots under UEFI and under a BIOS.
    pub plain: DiskImage,
    /// [`plain`](Self::plain) as one gzip member.
    pub gzip: PathBuf,
    /// `sha256:` digest of [`gzip`](Self::gzip).
    pub gzip_digest: String,
    /// The same system for 4Kn disks.
    pub native: DiskImage,
    /// Stands for everything the image was made from; another recipe, another image.
    recipe: String,
}

impl TargetOs {
    /// Builds the image into `dir`, or returns the one already there when it came from the same recipe.
    ///
    /// # Errors
    /// When a tool is missing or fails; its last words are in the error.
    pub fn build(dir: &Path) -> Result<Self> {
        let recipe = recipe();
        let manifest = dir.join("manifest.json");
        if let Some(built) = Self::load(&manifest).filter(|b| b.recipe == recipe && b.is_complete()) {
            return Ok(built);
        }
        fs::create_dir_all(dir).with_context(|| format!("create {}", dir.display()))?;
        let scratch = tempfile::tempdir_in(dir).context("create a scratch directory")?;
        println!("target OS: unpacking Debian (one to two minutes)");
        let root = debian::bootstrap(scratch.path())?;
        println!("target OS: laying out and compressing the disks");
        let image = |name: &str, sector| -> Result<DiskImage> {
            let raw = dir.join(name);
            disk::assemble(&root, scratch.path(), sector, &raw)?;
            let zstd = archive::zstd(&raw)?;
            Ok(DiskImage { sector, zstd_digest: archive::digest(&zstd)?, raw, zstd })
        };
        let plain = image("debian.raw", Sector::B512)?;
        let native = image("debian-4kn.raw", Sector::B4096)?;
        let gzip = archive::gzip(&plain.raw)?;
        let built = Self { gzip_digest: archive::digest(&gzip)?, plain, gzip, native, recipe };
        fs::write(&manifest, serde_json::to_vec_pretty(&built)?).context("write the manifest")?;
        Ok(built)
    }

    fn load(manifest: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(manifest).ok()?).ok()
    }

    fn is_complete(&self) -> bool {
        let files = [&self.plain.raw, &self.plain.zstd, &self.gzip, &self.native.raw, &self.native.zstd];
        files.iter().all(|file| file.is_file())
    }
}

/// Digest of all that decides what the image holds, package versions aside.
fn recipe() -> String {
    let mut hash = Sha256::new();
    hash.update(include_str!("mod.rs"));
    hash.update(include_str!("debian.rs"));
    hash.update(include_str!("disk.rs"));
    hash.update(include_str!("overlay.rs"));
    hash.update(overlay::GREETER);
    hex::encode(hash.finalize())
}
