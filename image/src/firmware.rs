//! Firmware files: what the selected modules may ask for, where it is found, and what is not to be had.

use crate::debian::Packages;
use crate::modules::{KernelTree, Selection};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

const PACKAGES: &str = include_str!("../firmware-packages.txt");

/// Firmware for an image.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Firmware {
    /// Files found, by path below `lib/firmware` in the image (perhaps with `.xz` or `.zst`).
    pub files: BTreeMap<String, PathBuf>,
    /// Files not found, by the modules that may ask for them.
    pub missing: BTreeMap<String, BTreeSet<String>>,
}

/// Firmware files by the selected modules that declare them.
#[must_use]
pub fn declared(tree: &KernelTree, selection: &Selection) -> BTreeMap<String, BTreeSet<String>> {
    let mut wanted: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for name in &selection.modules {
        for file in tree.modules.get(name).map_or(&[][..], |module| &module.info.firmware) {
            if safe(file) {
                wanted.entry(file.clone()).or_default().insert(name.clone());
            }
        }
    }
    wanted
}

/// Looks each declared file up in the directories, the first of which wins.
#[must_use]
pub fn find(wanted: BTreeMap<String, BTreeSet<String>>, directories: &[PathBuf]) -> Firmware {
    let mut firmware = Firmware::default();
    for (file, modules) in wanted {
        match directories.iter().find_map(|directory| look_in(directory, &file)) {
            Some((name, path)) => {
                firmware.files.insert(name, path);
            }
            None => {
                for module in modules {
                    firmware.missing.entry(module).or_default().insert(file.clone());
                }
            }
        }
    }
    firmware
}

/// Downloads and unpacks the firmware packages apt offers. Returns their firmware directories, and the
/// packages that could not be had, with the reason where apt does offer them.
#[must_use]
pub fn from_packages(packages: &Packages) -> (Vec<PathBuf>, Vec<String>) {
    let names: Vec<&str> = package_names().collect();
    let offered = packages.offered(&names).unwrap_or_default();
    let mut directories = Vec::new();
    let mut missing = Vec::new();
    for name in names {
        let unpacked =
            offered.contains(name).then(|| packages.download(name).and_then(|deb| packages.unpack(&deb)));
        match unpacked {
            Some(Ok(root)) => {
                directories.extend(["usr/lib/firmware", "lib/firmware"].map(|below| root.join(below)));
            }
            Some(Err(error)) => missing.push(format!("{name}: {error}")),
            None => missing.push(name.to_owned()),
        }
    }
    (directories, missing)
}

fn package_names() -> impl Iterator<Item = &'static str> {
    PACKAGES
        .lines()
        .map(|line| line.split('#').next().unwrap_or_default().trim())
        .filter(|name| !name.is_empty())
}

/// The plain file, or a compressed one, which the kernel's loader finds by itself.
fn look_in(directory: &Path, file: &str) -> Option<(String, PathBuf)> {
    ["", ".xz", ".zst"].iter().map(|end| format!("{file}{end}")).find_map(|name| {
        let path = directory.join(&name);
        path.is_file().then_some((name, path))
    })
}

/// A module's declaration is foreign input: it must not lead out of the firmware directory.
fn safe(file: &str) -> bool {
    file.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::resolve::resolve;
    use crate::test_tree::{list, tree};

    #[test]
    fn only_selected_modules_declare_and_paths_stay_inside() {
        let tree = tree(
            &[
                ("bnx2x", &["firmware=bnx2x/e2.fw", "firmware=../../etc/shadow", "firmware=/abs"]),
                ("bnx2", &["firmware=bnx2/mips.fw"]),
            ],
            &[],
        );
        let selection = resolve(&tree, &list("bnx2x")).expect("resolves");
        let wanted = declared(&tree, &selection);
        assert_eq!(wanted, BTreeMap::from([("bnx2x/e2.fw".into(), BTreeSet::from(["bnx2x".into()]))]));
    }

    #[test]
    fn files_are_found_plain_or_compressed_and_missing_ones_recorded_by_module() {
        let scratch = tempfile::tempdir().expect("scratch");
        std::fs::create_dir_all(scratch.path().join("a/sub")).expect("dir");
        std::fs::write(scratch.path().join("a/sub/plain.fw"), b"p").expect("file");
        std::fs::write(scratch.path().join("a/packed.fw.zst"), b"z").expect("file");
        let wanted = ["sub/plain.fw", "packed.fw", "absent.fw"]
            .map(|file| (file.to_owned(), BTreeSet::from(["card".to_owned()])));
        let firmware = find(BTreeMap::from(wanted), &[scratch.path().join("none"), scratch.path().join("a")]);
        let names: Vec<&str> = firmware.files.keys().map(String::as_str).collect();
        assert_eq!(names, ["packed.fw.zst", "sub/plain.fw"]);
        let absent = BTreeSet::from(["absent.fw".into()]);
        assert_eq!(firmware.missing, BTreeMap::from([("card".into(), absent)]));
    }

    #[test]
    fn the_package_list_is_readable() {
        let names: Vec<&str> = package_names().collect();
        assert!(names.contains(&"firmware-bnx2x"));
        assert!(names.iter().all(|name| name.starts_with("firmware-")), "{names:?}");
    }
}
