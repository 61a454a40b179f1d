//! Module lists: text files people edit.
//!
//! One module (or module alias, such as `crc32c`) a line; `#` starts a comment. A second word says more:
//! `load` asks the agent to load it at start, for what no device announces (file systems and their
//! helpers); `optional` lets a kernel lack it, for drivers that only newer kernels have.

use std::path::{Path, PathBuf};

/// Which machines an image is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// Virtual machines of the usual hypervisors and clouds. Small.
    Vm,
    /// Virtual machines and servers built since about 2015, with their firmware files.
    Full,
}

const VM: (&str, &str) = ("modules/vm.list", include_str!("../../modules/vm.list"));
const FULL: (&str, &str) = ("modules/full.list", include_str!("../../modules/full.list"));

impl Profile {
    /// The list that comes with this program. `full` holds everything of `vm`.
    ///
    /// # Errors
    /// When a line is malformed; a test keeps that from being released.
    pub fn list(self) -> Result<ModuleList, ListError> {
        let files: &[(&str, &str)] = match self {
            Profile::Vm => &[VM],
            Profile::Full => &[VM, FULL],
        };
        let mut list = ModuleList::default();
        for (name, text) in files {
            list.extend(Path::new(name), text)?;
        }
        Ok(list)
    }

    /// Goal for vmlinuz and initrd together, in bytes: what a slow management network still carries in
    /// a few seconds.
    #[must_use]
    pub fn size_goal(self) -> u64 {
        match self {
            Profile::Vm => 20_000_000,
            Profile::Full => 60_000_000,
        }
    }
}

impl std::fmt::Display for Profile {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            Profile::Vm => "vm",
            Profile::Full => "full",
        })
    }
}

/// A malformed or unreadable list.
#[derive(Debug, thiserror::Error)]
pub enum ListError {
    /// The file could not be read.
    #[error("cannot read module list {}: {source}", path.display())]
    Read {
        /// The list.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A line is neither a name nor a name with one known word.
    #[error("{}:{line}: expected `NAME`, `NAME load` or `NAME optional`, got `{got}`", path.display())]
    Line {
        /// The list.
        path: PathBuf,
        /// Line number, from 1.
        line: usize,
        /// The line without its comment.
        got: String,
    },
}

/// One wanted module and where it was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// Module or alias name as written.
    pub name: String,
    /// Loaded by the agent at start.
    pub load: bool,
    /// A kernel may lack it.
    pub optional: bool,
    /// `file:line`, for errors.
    pub origin: String,
}

/// Modules asked for, in the order of the files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModuleList {
    /// The entries, in order.
    pub entries: Vec<Wanted>,
}

impl ModuleList {
    /// Reads a list from a file instead of the ones that come with this program.
    ///
    /// # Errors
    /// When the file cannot be read or a line is malformed.
    pub fn read(path: &Path) -> Result<ModuleList, ListError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ListError::Read { path: path.to_owned(), source })?;
        let mut list = ModuleList::default();
        list.extend(path, &text)?;
        Ok(list)
    }

    /// Adds the entries of one file.
    ///
    /// # Errors
    /// At the first malformed line.
    pub fn extend(&mut self, path: &Path, text: &str) -> Result<(), ListError> {
        for (index, raw) in text.lines().enumerate() {
            let line = raw.split('#').next().unwrap_or_default().trim();
            let words: Vec<&str> = line.split_whitespace().collect();
            let (name, load, optional) = match words.as_slice() {
                [] => continue,
                [name] => (*name, false, false),
                [name, "load"] => (*name, true, false),
                [name, "optional"] => (*name, false, true),
                _ => {
                    return Err(ListError::Line {
                        path: path.to_owned(),
                        line: index + 1,
                        got: line.to_owned(),
                    });
                }
            };
            let origin = format!("{}:{}", path.display(), index + 1);
            self.entries.push(Wanted { name: name.to_owned(), load, optional, origin });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_comments_and_marks_are_read() {
        let mut list = ModuleList::default();
        let text = "# head\n\nnvme\next4 load # a file system\nionic optional\n";
        list.extend(Path::new("x.list"), text).expect("valid");
        let read: Vec<_> =
            list.entries.iter().map(|e| (e.name.as_str(), e.load, e.optional, e.origin.as_str())).collect();
        assert_eq!(
            read,
            [
                ("nvme", false, false, "x.list:3"),
                ("ext4", true, false, "x.list:4"),
                ("ionic", false, true, "x.list:5")
            ]
        );
    }

    #[test]
    fn a_malformed_line_is_named() {
        for line in ["ext4 later", "a b c"] {
            let error = ModuleList::default().extend(Path::new("x.list"), line).expect_err(line).to_string();
            assert!(error.contains("x.list:1") && error.contains(line), "{error}");
        }
    }

    #[test]
    fn the_lists_that_ship_are_valid_and_full_holds_vm() {
        let vm = Profile::Vm.list().expect("vm.list");
        let full = Profile::Full.list().expect("full.list");
        assert!(!vm.entries.is_empty());
        assert!(full.entries.len() > vm.entries.len());
        assert!(full.entries.starts_with(&vm.entries));
    }

    #[test]
    fn no_module_is_listed_twice() {
        let full = Profile::Full.list().expect("full.list");
        let mut seen = std::collections::BTreeMap::new();
        for entry in &full.entries {
            let before = seen.insert(crate::modinfo::canonical(&entry.name), entry.origin.clone());
            assert_eq!(before, None, "{} is listed again at {}", entry.name, entry.origin);
        }
    }
}
