//! From wanted names to the exact set of modules: a pure function over the kernel's tree.

use super::list::ModuleList;
use super::tree::KernelTree;
use crate::modinfo::canonical;
use std::collections::{BTreeMap, BTreeSet};

/// The modules that go into the image.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// Canonical names.
    pub modules: BTreeSet<String>,
    /// Canonical names the agent loads at start, in the order of the lists.
    pub load: Vec<String>,
    /// Optional names this kernel does not have, in the order of the lists.
    pub absent: Vec<String>,
    /// Soft dependencies this kernel does not have, by the module that named them. Harmless: the kernel
    /// treats them as wishes too.
    pub unmet_wishes: BTreeMap<String, BTreeSet<String>>,
}

/// Why the lists and the kernel do not fit together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// Wanted names that this kernel has neither as a module, an alias nor built in.
    #[error(
        "kernel {release} has no module, alias or built-in called {}; correct the list, or give another with --modules",
        names.join(", ")
    )]
    Unknown {
        /// Kernel release.
        release: String,
        /// `name (file:line)`, all of them.
        names: Vec<String>,
    },
    /// A module needs another that is not in the tree.
    #[error(
        "module {module} depends on {needs}, which kernel {release} does not have: the kernel package is incomplete"
    )]
    Dangling {
        /// Kernel release.
        release: String,
        /// The module.
        module: String,
        /// What it depends on.
        needs: String,
    },
}

/// Finds every wanted module and, transitively, what it depends on and what it wishes for.
///
/// # Errors
/// When a wanted name is unknown (all are named) or a dependency is missing.
pub fn resolve(tree: &KernelTree, list: &ModuleList) -> Result<Selection, ResolveError> {
    let mut selection = Selection::default();
    let mut unknown = Vec::new();
    let mut pending = Vec::new();
    for entry in &list.entries {
        let found = tree.answering(&entry.name);
        if found.is_empty() && !tree.builtin.contains_key(&canonical(&entry.name)) {
            if entry.optional {
                selection.absent.push(entry.name.clone());
            } else {
                unknown.push(format!("{} ({})", entry.name, entry.origin));
            }
        }
        for name in found {
            if entry.load && !selection.load.contains(&name) {
                selection.load.push(name.clone());
            }
            pending.push(name);
        }
    }
    if !unknown.is_empty() {
        return Err(ResolveError::Unknown { release: tree.release.clone(), names: unknown });
    }
    while let Some(name) = pending.pop() {
        let Some(module) = tree.modules.get(&name) else { continue };
        if !selection.modules.insert(name.clone()) {
            continue;
        }
        for needs in &module.info.depends {
            if tree.modules.contains_key(needs) {
                pending.push(needs.clone());
            } else if !tree.builtin.contains_key(needs) {
                return Err(ResolveError::Dangling {
                    release: tree.release.clone(),
                    module: name,
                    needs: needs.clone(),
                });
            }
        }
        for wish in module.info.pre.iter().chain(&module.info.post) {
            let found = tree.answering(wish);
            if found.is_empty() && !tree.builtin.contains_key(&canonical(wish)) {
                selection.unmet_wishes.entry(name.clone()).or_default().insert(wish.clone());
            }
            pending.extend(found);
        }
    }
    Ok(selection)
}

/// Every module `name` needs, itself excluded, in the order to load them.
#[must_use]
pub fn load_order(tree: &KernelTree, name: &str) -> Vec<String> {
    let mut order = Vec::new();
    let mut seen = BTreeSet::new();
    visit(tree, name, &mut seen, &mut order);
    order.pop();
    order
}

/// Depth first, needs before needers; `seen` also ends cycles.
fn visit(tree: &KernelTree, name: &str, seen: &mut BTreeSet<String>, order: &mut Vec<String>) {
    let Some(module) = tree.modules.get(name) else { return };
    if !seen.insert(name.to_owned()) {
        return;
    }
    for needs in &module.info.depends {
        visit(tree, needs, seen, order);
    }
    order.push(name.to_owned());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_tree::{list, tree};

    fn names(selection: &Selection) -> Vec<&str> {
        selection.modules.iter().map(String::as_str).collect()
    }

    #[test]
    fn wanted_modules_bring_what_they_depend_on_and_wish_for() {
        let tree = tree(
            &[
                ("ext4", &["depends=jbd2,mbcache", "softdep=pre: crypto-crc32c"]),
                ("jbd2", &["depends="]),
                ("mbcache", &["depends=lib"]),
                ("lib", &[]),
                ("crc32c_generic", &["alias=crypto-crc32c"]),
                ("unrelated", &[]),
                ("sd_mod", &["depends=scsi_mod"]),
            ],
            &["scsi_mod"],
        );
        let cases: [(&str, &[&str]); 4] = [
            ("ext4", &["crc32c_generic", "ext4", "jbd2", "lib", "mbcache"]),
            ("mbcache\nlib", &["lib", "mbcache"]),
            ("sd_mod", &["sd_mod"]),
            ("scsi_mod", &[]),
        ];
        for (wanted, expected) in cases {
            let selection = resolve(&tree, &list(wanted)).expect(wanted);
            assert_eq!(names(&selection), expected, "{wanted}");
        }
    }

    #[test]
    fn every_unknown_name_is_told_with_its_line() {
        let tree = tree(&[("nvme", &[])], &[]);
        let error = resolve(&tree, &list("nvme\nnvem\nahic load")).expect_err("unknown").to_string();
        for part in ["nvem (test.list:2)", "ahic (test.list:3)", "6.1.0-test"] {
            assert!(error.contains(part), "{error} should say {part}");
        }
    }

    #[test]
    fn an_optional_name_may_be_missing_and_is_recorded() {
        let tree = tree(&[("nvme", &[])], &[]);
        let selection = resolve(&tree, &list("ionic optional\nnvme optional")).expect("resolves");
        assert_eq!(
            (names(&selection), selection.absent.as_slice()),
            (vec!["nvme"], &["ionic".to_owned()][..])
        );
    }

    #[test]
    fn a_missing_dependency_names_both_modules() {
        let tree = tree(&[("nvme", &["depends=nvme-core"])], &[]);
        let error = resolve(&tree, &list("nvme")).expect_err("dangling");
        assert_eq!(
            error,
            ResolveError::Dangling {
                release: "6.1.0-test".into(),
                module: "nvme".into(),
                needs: "nvme_core".into()
            }
        );
    }

    #[test]
    fn an_unmet_wish_is_recorded_and_harmless() {
        let tree = tree(&[("nvme", &["softdep=pre: fast post: faster"])], &["faster"]);
        let selection = resolve(&tree, &list("nvme")).expect("resolves");
        assert_eq!(
            selection.unmet_wishes,
            BTreeMap::from([("nvme".into(), BTreeSet::from(["fast".into()]))])
        );
    }

    #[test]
    fn modules_to_load_keep_the_order_of_the_list() {
        let tree = tree(&[("vfat", &["depends=fat"]), ("fat", &[]), ("ext4", &[])], &["proc"]);
        let selection = resolve(&tree, &list("vfat load\nproc load\next4 load\nfat")).expect("resolves");
        assert_eq!(selection.load, ["vfat", "ext4"]);
    }

    #[test]
    fn needs_load_before_needers_and_cycles_end() {
        let tree = tree(
            &[
                ("top", &["depends=left,right"]),
                ("left", &["depends=base"]),
                ("right", &["depends=base,left"]),
                ("base", &[]),
                ("ping", &["depends=pong"]),
                ("pong", &["depends=ping"]),
            ],
            &[],
        );
        assert_eq!(load_order(&tree, "top"), ["base", "left", "right"]);
        assert_eq!(load_order(&tree, "base"), Vec::<String>::new());
        assert_eq!(load_order(&tree, "ping"), ["pong"]);
    }
}
