//! The modules of one kernel, as found under its `lib/modules/RELEASE`.

use crate::modinfo::{ModInfo, ModinfoError, canonical};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// One module file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Module {
    /// Path relative to `lib/modules/RELEASE`, as it will be in the image: `kernel/fs/ext4/ext4.ko`.
    pub path: String,
    /// The file on the build machine, perhaps compressed.
    pub file: PathBuf,
    /// What it declares.
    pub info: ModInfo,
}

/// All modules of a kernel by name, and what is built into it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KernelTree {
    /// Kernel release, `6.1.0-57-amd64`.
    pub release: String,
    /// Modules by canonical name.
    pub modules: BTreeMap<String, Module>,
    /// Paths of built-in modules as `modules.builtin` lists them, by canonical name.
    pub builtin: BTreeMap<String, String>,
}

/// Why a kernel's modules could not be read.
#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    /// A file or directory could not be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A module file is not one.
    #[error("module {}: {source}", path.display())]
    Module {
        /// Which.
        path: PathBuf,
        /// Why.
        source: ModinfoError,
    },
    /// A compressed module could not be decompressed.
    #[error("cannot decompress module {}: {reason}", path.display())]
    Compressed {
        /// Which.
        path: PathBuf,
        /// Why, and what to install.
        reason: String,
    },
    /// A module's debug information could not be taken out.
    #[error("cannot strip module {}: {reason}", path.display())]
    Strip {
        /// Which.
        path: PathBuf,
        /// Why, and what to install.
        reason: String,
    },
    /// Two files claim one name.
    #[error("two modules are called {name}: {} and {}; the kernel would load only one", first.display(), second.display())]
    Duplicate {
        /// The name.
        name: String,
        /// One file.
        first: PathBuf,
        /// The other.
        second: PathBuf,
    },
}

impl KernelTree {
    /// Reads every module below `root`, a `lib/modules/RELEASE` directory.
    ///
    /// # Errors
    /// When a file cannot be read or is no module.
    pub fn scan(root: &Path) -> Result<KernelTree, TreeError> {
        let release = root.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let mut tree = KernelTree { release, builtin: read_builtin(root)?, ..KernelTree::default() };
        for file in files_below(&root.join("kernel"))? {
            let Some(path) = path_in_image(root, &file) else { continue };
            let bytes = read_module(&file)?;
            let info = ModInfo::from_module(&bytes)
                .map_err(|source| TreeError::Module { path: file.clone(), source })?;
            let name = info.name.clone().unwrap_or_else(|| name_of(&path));
            let module = Module { path, file: file.clone(), info };
            if let Some(first) = tree.modules.insert(name.clone(), module) {
                return Err(TreeError::Duplicate { name, first: first.file, second: file });
            }
        }
        Ok(tree)
    }

    /// Names of the modules that answer to `name`: the module so called, or else all that have it as an
    /// alias without a pattern. Empty when there are none.
    #[must_use]
    pub fn answering(&self, name: &str) -> BTreeSet<String> {
        let wanted = canonical(name);
        if self.modules.contains_key(&wanted) {
            return BTreeSet::from([wanted]);
        }
        self.modules
            .iter()
            .filter(|(_, module)| module.info.aliases.iter().any(|alias| canonical(alias) == wanted))
            .map(|(name, _)| name.clone())
            .collect()
    }
}

/// The module's bytes as the kernel wants them, decompressed if need be.
///
/// # Errors
/// When the file cannot be read or decompressed.
pub fn read_module(file: &Path) -> Result<Vec<u8>, TreeError> {
    let bytes = std::fs::read(file).map_err(|source| TreeError::Read { path: file.to_owned(), source })?;
    let failed = |reason: String| TreeError::Compressed { path: file.to_owned(), reason };
    match file.extension().and_then(|extension| extension.to_str()) {
        Some("zst") => zstd::decode_all(bytes.as_slice()).map_err(|error| failed(error.to_string())),
        Some("xz") => crate::command::Command::new("xz", crate::command::SHORT)
            .args(["--decompress", "--stdout"])
            .arg(file)
            .output()
            .map_err(|error| failed(format!("{error}; package xz-utils has xz"))),
        _ => Ok(bytes),
    }
}

fn read_builtin(root: &Path) -> Result<BTreeMap<String, String>, TreeError> {
    let path = root.join("modules.builtin");
    let text = std::fs::read_to_string(&path).map_err(|source| TreeError::Read { path, source })?;
    Ok(text.lines().map(|line| (name_of(line), line.to_owned())).collect())
}

/// `kernel/fs/ext4/ext4.ko.xz` becomes `kernel/fs/ext4/ext4.ko`; other files are `None`.
fn path_in_image(root: &Path, file: &Path) -> Option<String> {
    let relative = file.strip_prefix(root).ok()?.to_str()?;
    let plain = [".xz", ".zst"].iter().find_map(|end| relative.strip_suffix(end)).unwrap_or(relative);
    plain.ends_with(".ko").then(|| plain.to_owned())
}

fn name_of(path: &str) -> String {
    let file = path.rsplit('/').next().unwrap_or(path);
    canonical(file.strip_suffix(".ko").unwrap_or(file))
}

/// All files below `root`, sorted, so that no result depends on the order of a directory.
fn files_below(root: &Path) -> Result<Vec<PathBuf>, TreeError> {
    let mut files = Vec::new();
    let mut pending = vec![root.to_owned()];
    while let Some(directory) = pending.pop() {
        let failed = |source| TreeError::Read { path: directory.clone(), source };
        for entry in std::fs::read_dir(&directory).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let kind = entry.file_type().map_err(failed)?;
            if kind.is_dir() {
                pending.push(entry.path());
            } else if kind.is_file() {
                files.push(entry.path());
            }
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_tree::FakeKernel;

    #[test]
    fn a_tree_is_read_by_name_with_its_builtins() {
        let kernel = FakeKernel::new("6.1.0-test")
            .module("kernel/fs/ext4/ext4.ko", &["name=ext4", "depends=jbd2"])
            .module("kernel/arch/x86/crypto/crc32c-intel.ko", &["depends=", "alias=crc32c"])
            .builtin(&["kernel/drivers/tty/serial/8250/8250_pci.ko"]);
        let tree = KernelTree::scan(&kernel.modules_dir()).expect("scan");
        assert_eq!(tree.release, "6.1.0-test");
        assert_eq!(tree.modules["ext4"].path, "kernel/fs/ext4/ext4.ko");
        assert!(tree.modules.contains_key("crc32c_intel"), "named after its file: {:?}", tree.modules.keys());
        assert!(tree.builtin.contains_key("8250_pci"));
    }

    #[test]
    fn a_name_finds_a_module_before_an_alias_and_either_spelling() {
        let kernel = FakeKernel::new("6.1.0-test")
            .module("kernel/a/crc32c-intel.ko", &["alias=crc32c", "alias=crypto-crc32c"])
            .module("kernel/b/crc32c_generic.ko", &["alias=crc32c"])
            .builtin(&[]);
        let tree = KernelTree::scan(&kernel.modules_dir()).expect("scan");
        let cases: [(&str, &[&str]); 4] = [
            ("crc32c", &["crc32c_generic", "crc32c_intel"]),
            ("crypto-crc32c", &["crc32c_intel"]),
            ("crc32c-generic", &["crc32c_generic"]),
            ("nothing", &[]),
        ];
        for (name, expected) in cases {
            let found = tree.answering(name);
            assert_eq!(found.iter().map(String::as_str).collect::<Vec<_>>(), expected, "{name}");
        }
    }

    #[test]
    fn compressed_modules_are_read_and_named_plainly() {
        let module = crate::test_elf::ElfFixture::module(&["name=nvme"]);
        let packed = zstd::encode_all(module.as_slice(), 1).expect("compress");
        let kernel = FakeKernel::new("6.1.0-test").file("kernel/nvme.ko.zst", &packed).builtin(&[]);
        let tree = KernelTree::scan(&kernel.modules_dir()).expect("scan");
        assert_eq!(tree.modules["nvme"].path, "kernel/nvme.ko");
        assert_eq!(read_module(&tree.modules["nvme"].file).expect("read"), module);
    }

    #[test]
    fn a_file_that_is_no_module_is_named() {
        let kernel = FakeKernel::new("6.1.0-test").file("kernel/bad.ko", b"text").builtin(&[]);
        let error = KernelTree::scan(&kernel.modules_dir()).expect_err("refused").to_string();
        assert!(error.contains("bad.ko") && error.contains("not an ELF"), "{error}");
    }

    #[test]
    fn two_modules_of_one_name_are_refused() {
        let kernel = FakeKernel::new("6.1.0-test")
            .module("kernel/a/x.ko", &["name=x"])
            .module("kernel/b/x.ko", &["name=x"])
            .builtin(&[]);
        let error = KernelTree::scan(&kernel.modules_dir()).expect_err("refused").to_string();
        assert!(error.contains("kernel/a/x.ko") && error.contains("kernel/b/x.ko"), "{error}");
    }
}
