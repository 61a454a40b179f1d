//! The text indexes of `lib/modules/RELEASE`, in `depmod`'s formats, for the selected modules only: the
//! agent matches device aliases against these, and never finds a module that is not there.

use super::resolve::{Selection, load_order};
use super::tree::{KernelTree, Module};
use std::fmt::Write as _;

/// The selected modules by file path, the order of every index.
fn by_path<'a>(tree: &'a KernelTree, selection: &'a Selection) -> Vec<(&'a String, &'a Module)> {
    let mut modules: Vec<_> = selection
        .modules
        .iter()
        .filter_map(|name| tree.modules.get(name).map(|module| (name, module)))
        .collect();
    modules.sort_by(|left, right| left.1.path.cmp(&right.1.path));
    modules
}

/// `modules.dep`: `path: path path`, everything a module needs; load from the last to the first.
#[must_use]
pub fn dep(tree: &KernelTree, selection: &Selection) -> String {
    let mut out = String::new();
    for (name, module) in by_path(tree, selection) {
        out.push_str(&module.path);
        out.push(':');
        for needs in load_order(tree, name).iter().rev() {
            if let Some(needed) = tree.modules.get(needs) {
                out.push(' ');
                out.push_str(&needed.path);
            }
        }
        out.push('\n');
    }
    out
}

/// `modules.alias`: `alias PATTERN module`.
#[must_use]
pub fn alias(tree: &KernelTree, selection: &Selection) -> String {
    let mut out = String::from("# Aliases extracted from modules themselves.\n");
    for (name, module) in by_path(tree, selection) {
        for alias in &module.info.aliases {
            // Writing to a String cannot fail.
            let _ = writeln!(out, "alias {alias} {name}");
        }
    }
    out
}

/// `modules.softdep`: `softdep module pre: a b post: c`.
#[must_use]
pub fn softdep(tree: &KernelTree, selection: &Selection) -> String {
    let mut out = String::from("# Soft dependencies extracted from modules themselves.\n");
    for (name, module) in by_path(tree, selection) {
        let wishes = [("pre:", &module.info.pre), ("post:", &module.info.post)];
        if wishes.iter().all(|(_, names)| names.is_empty()) {
            continue;
        }
        let _ = write!(out, "softdep {name}");
        for (marker, names) in wishes.iter().filter(|(_, names)| !names.is_empty()) {
            let _ = write!(out, " {marker} {}", names.join(" "));
        }
        out.push('\n');
    }
    out
}

/// `modules.builtin`: paths of what is built in, so that the agent does not look for it.
#[must_use]
pub fn builtin(tree: &KernelTree) -> String {
    let mut paths: Vec<&str> = tree.builtin.values().map(String::as_str).collect();
    paths.sort_unstable();
    paths.iter().flat_map(|path| [*path, "\n"]).collect()
}

/// `/etc/farrier/modules.load`: one module a line, loaded at start in this order.
#[must_use]
pub fn load(selection: &Selection) -> String {
    selection.load.iter().flat_map(|name| [name.as_str(), "\n"]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::resolve::resolve;
    use crate::test_tree::{list, tree};

    fn sample() -> (KernelTree, Selection) {
        let tree = tree(
            &[
                (
                    "ext4",
                    &["depends=jbd2,crc16", "alias=fs-ext4", "alias=ext3", "softdep=pre: crypto-crc32c"],
                ),
                ("jbd2", &["depends=crc16"]),
                ("crc16", &[]),
                ("crc32c_generic", &["alias=crypto-crc32c"]),
                ("e1000", &["alias=pci:v00008086d00001000sv*sd*bc*sc*i*", "softdep=pre: a post: b"]),
                ("left_out", &["alias=pci:v00001111d*", "softdep=pre: x"]),
            ],
            &["unix", "ahci"],
        );
        let selection = resolve(&tree, &list("ext4 load\ne1000")).expect("resolves");
        (tree, selection)
    }

    #[test]
    fn dependencies_are_listed_so_that_loading_from_the_end_works() {
        let (tree, selection) = sample();
        assert_eq!(
            dep(&tree, &selection),
            "kernel/crc16.ko:\nkernel/crc32c_generic.ko:\nkernel/e1000.ko:\n\
             kernel/ext4.ko: kernel/jbd2.ko kernel/crc16.ko\nkernel/jbd2.ko: kernel/crc16.ko\n"
        );
    }

    #[test]
    fn aliases_and_wishes_are_those_of_selected_modules_only() {
        let (tree, selection) = sample();
        let aliases = alias(&tree, &selection);
        assert!(aliases.contains("alias pci:v00008086d00001000sv*sd*bc*sc*i* e1000\n"), "{aliases}");
        assert!(aliases.contains("alias fs-ext4 ext4\nalias ext3 ext4\n"), "{aliases}");
        assert!(!aliases.contains("left_out"), "{aliases}");
        let wishes = softdep(&tree, &selection);
        assert!(
            wishes.ends_with("softdep e1000 pre: a post: b\nsoftdep ext4 pre: crypto-crc32c\n"),
            "{wishes}"
        );
        assert!(!wishes.contains("left_out"), "{wishes}");
    }

    #[test]
    fn every_path_in_modules_dep_is_a_selected_module() {
        let (tree, selection) = sample();
        let shipped: Vec<&str> =
            selection.modules.iter().map(|name| tree.modules[name].path.as_str()).collect();
        for line in dep(&tree, &selection).lines() {
            for path in line.split([':', ' ']).filter(|path| !path.is_empty()) {
                assert!(shipped.contains(&path), "{path} is not in the image");
            }
        }
    }

    #[test]
    fn builtins_and_modules_to_load_are_one_a_line() {
        let (tree, selection) = sample();
        assert_eq!(builtin(&tree), "kernel/ahci.ko\nkernel/unix.ko\n");
        assert_eq!(load(&selection), "ext4\n");
    }
}
