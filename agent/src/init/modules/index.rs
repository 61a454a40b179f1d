//! What `depmod` wrote: which module serves which device, and what it needs before and after it.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::pattern;

/// Modules that ask for another by `request_module`, which needs a `modprobe` nobody has here: loaded after them. The
/// other has no device of its own to be found by, as a ConnectX-3's Ethernet in kernels before 6.7.
const REQUESTED: [(&str, &str); 1] = [("mlx4_core", "mlx4_en")];

/// The modules of one kernel.
#[derive(Debug, Default)]
pub struct Index {
    dir: PathBuf,
    /// Pattern and folded module name, in the order of the file.
    aliases: Vec<(String, String)>,
    /// Path and dependencies' paths, by folded module name.
    files: HashMap<String, (String, Vec<String>)>,
    /// Modules to load before and after, by folded module name.
    soft: HashMap<String, (Vec<String>, Vec<String>)>,
    builtin: HashSet<String>,
}

impl Index {
    /// Reads the tables in `dir`; a missing one is empty.
    pub fn read(dir: &Path) -> Self {
        let read = |name: &str| fs::read_to_string(dir.join(name)).unwrap_or_default();
        let mut index = Self { dir: dir.to_owned(), ..Self::default() };
        for line in read("modules.alias").lines() {
            let mut words = line.split_ascii_whitespace();
            if let (Some("alias"), Some(pattern), Some(module)) = (words.next(), words.next(), words.next()) {
                index.aliases.push((pattern.to_owned(), fold(module)));
            }
        }
        for line in read("modules.dep").lines() {
            if let Some((path, needs)) = line.split_once(':') {
                let needs = needs.split_ascii_whitespace().map(str::to_owned).collect();
                index.files.insert(name_of(path), (path.to_owned(), needs));
            }
        }
        for line in read("modules.softdep").lines() {
            let mut words = line.split_ascii_whitespace();
            if let (Some("softdep"), Some(module)) = (words.next(), words.next()) {
                let soft = index.soft.entry(fold(module)).or_default();
                let mut is_post = false;
                for word in words {
                    match word {
                        "pre:" => is_post = false,
                        "post:" => is_post = true,
                        name if is_post => soft.1.push(fold(name)),
                        name => soft.0.push(fold(name)),
                    }
                }
            }
        }
        for (module, requested) in REQUESTED {
            index.soft.entry(module.to_owned()).or_default().1.push(requested.to_owned());
        }
        index.builtin = read("modules.builtin").lines().map(name_of).collect();
        index
    }

    /// Whether there is anything to load at all.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Every module that serves a device of this modalias, or the module of this name.
    pub fn lookup(&self, alias: &str) -> Vec<String> {
        let name = fold(alias);
        if self.files.contains_key(&name) || self.builtin.contains(&name) {
            return vec![name];
        }
        let mut found: Vec<String> = Vec::new();
        for (pattern, module) in &self.aliases {
            if pattern::matches(pattern, alias) && !found.contains(module) {
                found.push(module.clone());
            }
        }
        found
    }

    /// The files to load for a module, in order: what it needs before it, itself, what it wants after it.
    /// Empty for a module that is built in or not in this image.
    pub fn order(&self, module: &str) -> Vec<PathBuf> {
        let mut order = Vec::new();
        self.visit(&fold(module), &mut HashSet::new(), &mut order);
        order.into_iter().map(|path| self.dir.join(path)).collect()
    }

    fn visit(&self, module: &str, seen: &mut HashSet<String>, order: &mut Vec<String>) {
        if !seen.insert(module.to_owned()) {
            return;
        }
        let Some((path, needs)) = self.files.get(module) else { return };
        let empty = (Vec::new(), Vec::new());
        let (before, after) = self.soft.get(module).unwrap_or(&empty);
        for name in before {
            for module in self.lookup(name) {
                self.visit(&module, seen, order);
            }
        }
        // The file lists the nearest first.
        for need in needs.iter().rev() {
            self.visit(&name_of(need), seen, order);
        }
        order.push(path.clone());
        for name in after {
            for module in self.lookup(name) {
                self.visit(&module, seen, order);
            }
        }
    }
}

/// `-` and `_` are one and the same in module names.
fn fold(name: &str) -> String {
    name.replace('-', "_")
}

/// Module name of a path such as `kernel/fs/fat/vfat.ko`.
fn name_of(path: &str) -> String {
    let file = path.rsplit('/').next().unwrap_or(path);
    fold(file.split(".ko").next().unwrap_or(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index() -> Index {
        let dir = tempfile::tempdir().unwrap();
        fs::write(
            dir.path().join("modules.alias"),
            "# comment\nalias virtio:d00000001v* virtio_net\nalias fs-ext4 ext4\nalias crypto-crc32c crc32c_generic\nbroken\n",
        )
        .unwrap();
        fs::write(
            dir.path().join("modules.dep"),
            "kernel/drivers/net/virtio_net.ko: kernel/drivers/net/net_failover.ko kernel/net/core/failover.ko\n\
             kernel/drivers/net/net_failover.ko: kernel/net/core/failover.ko\nkernel/net/core/failover.ko:\n\
             kernel/fs/ext4/ext4.ko: kernel/fs/jbd2/jbd2.ko\nkernel/fs/jbd2/jbd2.ko:\n\
             kernel/crypto/crc32c_generic.ko:\nkernel/a-b.ko: kernel/b.ko\nkernel/b.ko: kernel/a-b.ko\n",
        )
        .unwrap();
        fs::write(
            dir.path().join("modules.softdep"),
            "softdep ext4 pre: crc32c post: b\nsoftdep jbd2 pre: crypto-crc32c\n",
        )
        .unwrap();
        fs::write(dir.path().join("modules.builtin"), "kernel/drivers/virtio/virtio-pci.ko\n").unwrap();
        Index::read(dir.path())
    }

    fn names(order: &[PathBuf]) -> Vec<String> {
        order.iter().map(|p| name_of(&p.to_string_lossy())).collect()
    }

    #[test]
    fn a_device_finds_its_module_with_dependencies_first() {
        let index = index();
        assert_eq!(index.lookup("virtio:d00000001v00001AF4"), ["virtio_net"]);
        assert_eq!(names(&index.order("virtio_net")), ["failover", "net_failover", "virtio_net"]);
    }

    #[test]
    fn soft_dependencies_load_before_and_after_and_may_be_aliases() {
        let names = names(&index().order("ext4"));
        let at = |name: &str| names.iter().position(|n| n == name).unwrap();
        assert!(at("crc32c_generic") < at("jbd2") && at("jbd2") < at("ext4") && at("ext4") < at("b"));
    }

    #[test]
    fn what_a_driver_asks_the_kernel_for_is_loaded_after_it() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("modules.alias"), "alias pci:v000015B3d00001003sv* mlx4_core\n").unwrap();
        fs::write(dir.path().join("modules.dep"), "mlx4_core.ko:\nmlx4_en.ko: mlx4_core.ko\n").unwrap();
        let index = Index::read(dir.path());
        let found = index.lookup("pci:v000015B3d00001003sv0");
        assert_eq!(found, ["mlx4_core"]);
        assert_eq!(names(&index.order(&found[0])), ["mlx4_core", "mlx4_en"]);
    }

    #[test]
    fn names_fold_dashes_and_built_in_modules_need_no_file() {
        let index = index();
        assert_eq!(index.lookup("virtio_pci"), ["virtio_pci"]);
        assert!(index.order("virtio-pci").is_empty());
        assert_eq!(index.lookup("a_b"), ["a_b"]);
    }

    #[test]
    fn circles_and_unknown_modules_end() {
        let index = index();
        assert_eq!(names(&index.order("a-b")), ["b", "a_b"]);
        assert!(index.order("nonesuch").is_empty());
        assert!(Index::read(Path::new("/nonesuch")).is_empty());
    }
}
