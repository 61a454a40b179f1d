//! Loads the modules of the devices that are there, and of those that appear because of it.

use std::collections::HashSet;
use std::ffi::CString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::kmod::{ModuleInitFlags, finit_module};

use super::Index;

/// Drivers that talk to their device while they load, and for minutes to one that hangs, as management controllers
/// do: not for the passes that disks and network wait for. Who wants them loads them by name.
pub const LATER: [&str; 2] = ["ipmi_si", "ipmi_ssif"];

/// Loads one module file.
pub trait Insert {
    /// Loads it. A module that is loaded already, or has no device to serve, counts as loaded.
    ///
    /// # Errors
    /// When the kernel refuses it.
    fn insert(&mut self, path: &Path) -> io::Result<()>;
}

/// The running kernel.
#[derive(Clone, Copy, Debug)]
pub struct Kernel;

impl Insert for Kernel {
    fn insert(&mut self, path: &Path) -> io::Result<()> {
        let file = File::open(path)?;
        match finit_module(&file, &CString::default(), ModuleInitFlags::empty()) {
            Ok(()) | Err(Errno::EEXIST | Errno::ENODEV) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }
}

/// What was looked at and loaded so far.
#[derive(Debug)]
pub struct Coldplug<I> {
    index: Index,
    insert: I,
    seen: HashSet<String>,
    done: HashSet<PathBuf>,
    /// Module files the kernel refused, with its reason.
    pub refused: Vec<(PathBuf, String)>,
}

impl<I: Insert> Coldplug<I> {
    /// Nothing looked at yet.
    pub fn new(index: Index, insert: I) -> Self {
        Self { index, insert, seen: HashSet::new(), done: HashSet::new(), refused: Vec::new() }
    }

    /// How many module files were loaded.
    pub fn loaded(&self) -> usize {
        self.done.len() - self.refused.len()
    }

    /// Loads a module by name or alias, with all it needs.
    pub fn load(&mut self, alias: &str) {
        for module in self.index.lookup(alias) {
            self.load_module(&module);
        }
    }

    fn load_module(&mut self, module: &str) {
        for path in self.index.order(module) {
            if !self.done.insert(path.clone()) {
                continue;
            }
            if let Err(error) = self.insert.insert(&path) {
                tracing::warn!(module, file = %path.display(), %error, "module not loaded");
                self.refused.push((path, error.to_string()));
            }
        }
    }

    /// Loads the modules listed in a file, one to a line, `#` comments allowed. No file, no modules.
    pub fn load_list(&mut self, list: &Path) {
        for line in fs::read_to_string(list).unwrap_or_default().lines() {
            let name = line.split('#').next().unwrap_or_default().trim();
            if !name.is_empty() {
                self.load(name);
            }
        }
    }

    /// Looks at every device under `sys/devices` once; gives how many were new.
    pub fn pass(&mut self, sys: &Path) -> usize {
        let mut fresh = Vec::new();
        collect(&sys.join("devices"), &mut |alias| {
            if self.seen.insert(alias.to_owned()) {
                fresh.push(alias.to_owned());
            }
        });
        // Ascending, so that every boot of one machine loads in one order.
        fresh.sort();
        for alias in &fresh {
            let modules = self.index.lookup(alias).into_iter();
            for module in modules.filter(|module| !LATER.contains(&module.as_str())) {
                self.load_module(&module);
            }
        }
        fresh.len()
    }
}

/// Every modalias below a directory. Symbolic links lead to devices that are met elsewhere.
fn collect(dir: &Path, found: &mut impl FnMut(&str)) {
    let Ok(entries) = fs::read_dir(dir) else { return };
    for entry in entries.flatten() {
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() {
            collect(&entry.path(), found);
        } else if kind.is_file() && entry.file_name() == "modalias" {
            let text = fs::read_to_string(entry.path()).unwrap_or_default();
            let alias = text.trim();
            if !alias.is_empty() {
                found(alias);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A kernel in which loading `bus` makes a device of it appear.
    struct Fake {
        sys: PathBuf,
        loaded: Vec<String>,
    }

    impl Insert for &mut Fake {
        fn insert(&mut self, path: &Path) -> io::Result<()> {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            self.loaded.push(name.clone());
            match name.as_str() {
                "bus" => {
                    device(&self.sys, "pci0/bus0/disk0", "bus:disk");
                    Ok(())
                }
                "bad" => Err(Errno::ENOEXEC.into()),
                _ => Ok(()),
            }
        }
    }

    fn device(sys: &Path, at: &str, alias: &str) {
        let dir = sys.join("devices").join(at);
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("modalias"), format!("{alias}\n")).unwrap();
    }

    fn modules(dir: &Path) -> Index {
        fs::write(
            dir.join("modules.alias"),
            "alias pci:v1d1* bus\nalias bus:disk disk\nalias pci:v2* bad\nalias pci:v2* good\nalias acpi*:IPI0001:* ipmi_si\n",
        )
        .unwrap();
        fs::write(
            dir.join("modules.dep"),
            "bus.ko:\ndisk.ko: core.ko\ncore.ko:\nbad.ko:\ngood.ko:\nfs.ko:\nipmi_si.ko: ipmi_msghandler.ko\nipmi_msghandler.ko:\n",
        )
        .unwrap();
        Index::read(dir)
    }

    #[test]
    fn devices_that_appear_by_loading_are_served_in_the_next_pass() {
        let root = tempfile::tempdir().unwrap();
        device(root.path(), "pci0", "pci:v1d1sv");
        device(root.path(), "pci1", "pci:v2");
        device(root.path(), "pci2", "pci:unknown");
        let mut fake = Fake { sys: root.path().to_owned(), loaded: Vec::new() };
        let mut coldplug = Coldplug::new(modules(root.path()), &mut fake);
        assert_eq!(coldplug.pass(root.path()), 3);
        assert_eq!(coldplug.pass(root.path()), 1);
        assert_eq!(coldplug.pass(root.path()), 0);
        assert_eq!(coldplug.refused.len(), 1);
        assert_eq!(coldplug.loaded(), 4);
        assert_eq!(fake.loaded, ["bus", "bad", "good", "core", "disk"]);
    }

    #[test]
    fn drivers_of_what_may_hang_are_loaded_by_name_alone() {
        let root = tempfile::tempdir().unwrap();
        device(root.path(), "acpi0", "acpi:IPI0001:");
        let mut fake = Fake { sys: root.path().to_owned(), loaded: Vec::new() };
        let mut coldplug = Coldplug::new(modules(root.path()), &mut fake);
        assert_eq!(coldplug.pass(root.path()), 1);
        assert_eq!(coldplug.loaded(), 0);
        coldplug.load("ipmi-si");
        assert_eq!(fake.loaded, ["ipmi_msghandler", "ipmi_si"]);
    }

    #[test]
    fn the_list_may_hold_comments_and_blank_lines() {
        let root = tempfile::tempdir().unwrap();
        let list = root.path().join("modules.load");
        fs::write(&list, "# file systems\nfs # needed later\n\nnonesuch\n").unwrap();
        let mut fake = Fake { sys: root.path().to_owned(), loaded: Vec::new() };
        Coldplug::new(modules(root.path()), &mut fake).load_list(&list);
        assert_eq!(fake.loaded, ["fs"]);
    }
}
