//! Fake kernels for tests: in memory for pure functions, on disk for those that read files.

use crate::modinfo::{ModInfo, canonical};
use crate::modules::{KernelTree, Module, ModuleList};
use crate::test_elf::ElfFixture;
use std::path::{Path, PathBuf};

/// A kernel tree in memory: modules with their `.modinfo` strings, and names built in.
pub(crate) fn tree(modules: &[(&str, &[&str])], builtin: &[&str]) -> KernelTree {
    let path = |name: &str| format!("kernel/{name}.ko");
    KernelTree {
        release: "6.1.0-test".into(),
        modules: modules
            .iter()
            .map(|(name, entries)| {
                let section = entries.join("\0").into_bytes();
                let info = ModInfo::from_section(&section);
                (canonical(name), Module { path: path(name), file: PathBuf::from(path(name)), info })
            })
            .collect(),
        builtin: builtin.iter().map(|name| (canonical(name), path(name))).collect(),
    }
}

pub(crate) fn list(text: &str) -> ModuleList {
    let mut list = ModuleList::default();
    list.extend(Path::new("test.list"), text).expect("valid list");
    list
}

/// An unpacked kernel package in a scratch directory.
#[derive(Debug)]
pub(crate) struct FakeKernel {
    root: tempfile::TempDir,
    release: String,
}

impl FakeKernel {
    pub(crate) fn new(release: &str) -> Self {
        let root = tempfile::tempdir().expect("scratch directory");
        let kernel = FakeKernel { root, release: release.to_owned() };
        std::fs::create_dir_all(kernel.modules_dir().join("kernel")).expect("modules directory");
        std::fs::create_dir_all(kernel.root().join("boot")).expect("boot directory");
        std::fs::write(kernel.root().join(format!("boot/vmlinuz-{release}")), b"kernel").expect("vmlinuz");
        kernel
    }

    pub(crate) fn root(&self) -> &Path {
        self.root.path()
    }

    pub(crate) fn modules_dir(&self) -> PathBuf {
        self.root().join("lib/modules").join(&self.release)
    }

    pub(crate) fn module(self, path: &str, entries: &[&str]) -> Self {
        let bytes = ElfFixture::module(entries);
        self.file(path, &bytes)
    }

    pub(crate) fn file(self, path: &str, bytes: &[u8]) -> Self {
        let file = self.modules_dir().join(path);
        std::fs::create_dir_all(file.parent().expect("has a parent")).expect("directory");
        std::fs::write(file, bytes).expect("file");
        self
    }

    pub(crate) fn builtin(self, paths: &[&str]) -> Self {
        let text: String = paths.iter().flat_map(|path| [*path, "\n"]).collect();
        self.file("modules.builtin", text.as_bytes())
    }
}
