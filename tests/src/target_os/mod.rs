//! The operating systems the end-to-end runs install: real Debian disk images, made from this machine's own
//! package sources, that on first boot say what was planted for them.
//!
//! Made without loop devices, so it works in containers: file systems are filled while they are created.

mod debian;
mod disk;
mod overlay;
mod systems;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context as _, Result};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::archive;
use crate::partitions::Sector;
use systems::System;

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

/// The built images of a system that reads its user-data in COS_OEM.
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
}

impl TargetOs {
    /// Builds the images into a directory of `build`, or returns those already there when they came from the same
    /// recipe.
    ///
    /// # Errors
    /// When a tool is missing or fails; its last words are in the error.
    pub fn build(build: &Path) -> Result<Self> {
        once(&build.join("target-os"), &systems::PLAIN, |maker| {
            let plain = maker.image("", Sector::B512)?;
            let native = maker.image("-4kn", Sector::B4096)?;
            let gzip = archive::gzip(&plain.raw)?;
            Ok(Self { gzip_digest: archive::digest(&gzip)?, plain, gzip, native })
        })
    }
}

/// The built image of a system with Debian's cloud-init, without COS_OEM, for disks with 512-byte sectors.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CloudOs {
    /// The image.
    pub image: DiskImage,
}

impl CloudOs {
    /// Builds the image into a directory of `build`, or returns the one already there when it came from the same
    /// recipe.
    ///
    /// # Errors
    /// As [`TargetOs::build`].
    pub fn build(build: &Path) -> Result<Self> {
        once(&build.join("cloud-os"), &systems::CLOUD, |maker| {
            Ok(Self { image: maker.image("", Sector::B512)? })
        })
    }
}

/// Images that are there, and what they came from.
#[derive(Serialize, Deserialize)]
struct Manifest<T> {
    /// Stands for everything the images were made from; another recipe, other images.
    recipe: String,
    /// Every file that was made.
    files: Vec<PathBuf>,
    built: T,
}

/// Makes disk images of an unpacked system.
struct Maker<'a> {
    system: &'a System,
    root: &'a Path,
    scratch: &'a Path,
    dir: &'a Path,
}

impl Maker<'_> {
    /// An image for such sectors, in a file whose name has this suffix.
    fn image(&self, suffix: &str, sector: Sector) -> Result<DiskImage> {
        let raw = self.dir.join(format!("{}{suffix}.raw", self.system.name));
        disk::assemble(self.root, self.scratch, sector, self.system.oem, &raw)?;
        let zstd = archive::zstd(&raw)?;
        Ok(DiskImage { sector, zstd_digest: archive::digest(&zstd)?, raw, zstd })
    }
}

/// What `make` makes in `dir` of a system, or what it made when the recipe was the same.
fn once<T: Serialize + DeserializeOwned>(
    dir: &Path,
    system: &System,
    make: impl FnOnce(&Maker<'_>) -> Result<T>,
) -> Result<T> {
    let recipe = recipe(system);
    let place = dir.join("manifest.json");
    if let Some(known) = known::<T>(&place, &recipe) {
        return Ok(known);
    }
    let started = Instant::now();
    if dir.exists() {
        fs::remove_dir_all(dir).with_context(|| format!("clear {}", dir.display()))?;
    }
    fs::create_dir_all(dir).with_context(|| format!("create {}", dir.display()))?;
    let scratch = tempfile::tempdir_in(dir).context("create a scratch directory")?;
    println!("target OS: unpacking {} (one to two minutes)", system.name);
    let root = debian::bootstrap(system, scratch.path())?;
    println!("target OS: laying out and compressing the disks");
    let built = make(&Maker { system, root: &root, scratch: scratch.path(), dir })?;
    scratch.close().context("clear the scratch directory")?;
    let manifest = Manifest { recipe, files: files(dir)?, built };
    fs::write(&place, serde_json::to_vec_pretty(&manifest)?).context("write the manifest")?;
    println!("target OS: {} took {} s", system.name, started.elapsed().as_secs());
    Ok(manifest.built)
}

/// What is there of that recipe, if all of it is.
fn known<T: DeserializeOwned>(manifest: &Path, recipe: &str) -> Option<T> {
    let manifest: Manifest<T> = serde_json::from_slice(&fs::read(manifest).ok()?).ok()?;
    let complete = manifest.files.iter().all(|file| file.is_file());
    (manifest.recipe == recipe && complete).then_some(manifest.built)
}

fn files(dir: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(dir).with_context(|| format!("list {}", dir.display()))?;
    entries.map(|entry| Ok(entry?.path())).collect()
}

/// Digest of all that decides what the images hold, package versions aside: the code that makes them, and the system
/// with the content of every file laid over it.
fn recipe(system: &System) -> String {
    let mut hash = Sha256::new();
    for code in [include_str!("mod.rs"), include_str!("debian.rs"), include_str!("disk.rs")] {
        hash.update(code);
    }
    for (path, mode, content) in system.files() {
        hash.update(format!("{path}\0{mode:o}\0{content}\0"));
    }
    hash.update(format!("{} {system:?}", system.packages()));
    hex::encode(hash.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_made_once_is_not_made_again_until_the_recipe_changes_or_a_file_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let (place, image) = (dir.path().join("manifest.json"), dir.path().join("debian.raw"));
        fs::write(&image, b"disk").unwrap();
        let manifest =
            Manifest { recipe: "r1".to_owned(), files: vec![image.clone()], built: "built".to_owned() };
        assert_eq!(known::<String>(&place, "r1"), None, "nothing was made yet");
        fs::write(&place, serde_json::to_vec(&manifest).unwrap()).unwrap();
        assert_eq!(known::<String>(&place, "r1").as_deref(), Some("built"));
        assert_eq!(known::<String>(&place, "r2"), None);
        fs::remove_file(&image).unwrap();
        assert_eq!(known::<String>(&place, "r1"), None);
    }

    #[test]
    fn systems_differ_in_their_recipe_by_any_file_that_is_laid_over_them() {
        let plain = recipe(&systems::PLAIN);
        assert_eq!(plain, recipe(&systems::PLAIN));
        assert_ne!(plain, recipe(&systems::CLOUD));
        let files: &'static [overlay::File] = &[("etc/issue", 0o644, "one")];
        let other: &'static [overlay::File] = &[("etc/issue", 0o644, "two")];
        let with = |own_files| recipe(&System { own_files, ..systems::PLAIN });
        assert_ne!(with(files), with(other));
    }
}
