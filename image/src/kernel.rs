//! The kernel: a Debian kernel package, or any tree of the same shape, and where things are in it.

use crate::debian::{DebianError, Packages};
use std::path::{Path, PathBuf};

/// The package that always depends on the release's current kernel.
const METAPACKAGE: &str = "linux-image-amd64";

/// Why no kernel is at hand.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// The package could not be downloaded or unpacked.
    #[error(transparent)]
    Package(#[from] DebianError),
    /// The tree is not a kernel package.
    #[error("{} holds no kernel: expected exactly one {what}, found {}", root.display(), found.len())]
    Shape {
        /// The unpacked package.
        root: PathBuf,
        /// What is missing or there twice.
        what: &'static str,
        /// What was found.
        found: Vec<PathBuf>,
    },
}

/// Where the kernel comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KernelSource {
    /// The current kernel of the Debian release apt is set up for.
    Apt,
    /// A kernel package on disk.
    Deb(PathBuf),
    /// An unpacked kernel package.
    Tree(PathBuf),
}

/// An unpacked kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kernel {
    /// Where it is unpacked.
    pub root: PathBuf,
    /// The boot file.
    pub vmlinuz: PathBuf,
    /// Its `lib/modules/RELEASE`.
    pub modules: PathBuf,
    /// Kernel release, as `uname -r` will print.
    pub release: String,
}

impl KernelSource {
    /// Downloads and unpacks as needed.
    ///
    /// # Errors
    /// When the package cannot be had or is no kernel.
    pub fn obtain(&self, packages: &Packages) -> Result<Kernel, KernelError> {
        let root = match self {
            KernelSource::Tree(root) => root.clone(),
            KernelSource::Deb(deb) => packages.unpack(deb)?,
            KernelSource::Apt => {
                let package = packages.dependency(METAPACKAGE, "linux-image-")?;
                packages.unpack(&packages.download(&package)?)?
            }
        };
        Kernel::locate(&root)
    }
}

impl Kernel {
    /// Finds the kernel in an unpacked package, with or without a merged `/usr`.
    ///
    /// # Errors
    /// When there is not exactly one vmlinuz and one modules directory.
    pub fn locate(root: &Path) -> Result<Kernel, KernelError> {
        let one = |what: &'static str, mut found: Vec<PathBuf>| match (found.pop(), found.is_empty()) {
            (Some(only), true) => Ok(only),
            (last, _) => {
                found.extend(last);
                Err(KernelError::Shape { root: root.to_owned(), what, found })
            }
        };
        let vmlinuz = one("boot/vmlinuz-*", children(&root.join("boot"), "vmlinuz-"))?;
        let mut modules = children(&root.join("usr/lib/modules"), "");
        if modules.is_empty() {
            modules = children(&root.join("lib/modules"), "");
        }
        let modules = one("lib/modules/* directory", modules)?;
        let release = modules.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Kernel { root: root.to_owned(), vmlinuz, modules, release })
    }
}

/// Entries of a directory whose names start with `prefix`, sorted. None when there is no directory.
fn children(directory: &Path, prefix: &str) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(directory)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix))
        .map(|entry| entry.path())
        .collect();
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_tree::FakeKernel;

    #[test]
    fn a_kernel_is_found_in_its_package() {
        let fake = FakeKernel::new("6.1.0-test").builtin(&[]);
        let kernel = Kernel::locate(fake.root()).expect("found");
        assert_eq!(kernel.release, "6.1.0-test");
        assert_eq!(kernel.modules, fake.modules_dir());
        assert_eq!(std::fs::read(&kernel.vmlinuz).expect("vmlinuz"), b"kernel");
    }

    #[test]
    fn none_or_two_kernels_are_refused() {
        let empty = tempfile::tempdir().expect("scratch");
        let error = Kernel::locate(empty.path()).expect_err("refused").to_string();
        assert!(error.contains("boot/vmlinuz-*") && error.contains("found 0"), "{error}");
        let fake = FakeKernel::new("6.1.0-test");
        std::fs::write(fake.root().join("boot/vmlinuz-other"), b"").expect("second kernel");
        let error = Kernel::locate(fake.root()).expect_err("refused").to_string();
        assert!(error.contains("found 2"), "{error}");
    }
}
