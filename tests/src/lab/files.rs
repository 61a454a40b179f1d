//! What was built before the lab opened.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};

/// The inspection image.
#[derive(Clone, Debug)]
pub struct Inspection {
    /// Directory of `vmlinuz` and `initrd.img`.
    pub dir: PathBuf,
}

impl Inspection {
    /// Finds the image.
    ///
    /// # Errors
    /// When it has not been built.
    pub fn find(dir: &Path) -> Result<Self> {
        for name in ["vmlinuz", "initrd.img"] {
            let path = dir.join(name);
            ensure!(path.is_file(), "no {}; `make image` builds the inspection image", path.display());
        }
        Ok(Self { dir: dir.canonicalize()? })
    }
}

/// The `farrier` program built beside this one.
///
/// # Errors
/// When it has not been built.
pub fn programs() -> Result<PathBuf> {
    let here = std::env::current_exe().context("find this program")?;
    let farrier = here.with_file_name("farrier");
    ensure!(farrier.is_file(), "no {}; `cargo build --workspace` builds it", farrier.display());
    Ok(farrier)
}
