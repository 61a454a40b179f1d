//! A sysfs, procfs and devtmpfs made of plain files.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::disk::Roots;

pub(super) struct Machine {
    pub(super) roots: Roots,
    dir: tempfile::TempDir,
}

impl Machine {
    pub(super) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let roots =
            Roots { sys: dir.path().join("sys"), dev: dir.path().join("dev"), proc: dir.path().join("proc") };
        for made in ["sys/block", "dev", "proc/self"] {
            fs::create_dir_all(dir.path().join(made)).unwrap();
        }
        Self { roots, dir }
    }

    /// A block device at this place under `/sys/devices`, with these attributes below its directory.
    pub(super) fn block(&self, place: &str, attributes: &[(&str, &str)]) -> PathBuf {
        let real = self.dir.path().join("sys/devices").join(place);
        fs::create_dir_all(real.join("queue")).unwrap();
        let name = real.file_name().unwrap().to_owned();
        symlink(&real, self.roots.sys.join("block").join(&name)).unwrap();
        fs::write(self.roots.dev.join(&name), "").unwrap();
        for (file, value) in attributes {
            self.attribute(&real, file, value.as_bytes());
        }
        real
    }

    /// A virtio disk of so many sectors in PCI slot `slot`.
    pub(super) fn virtio(&self, name: &str, slot: u32, sectors: u64, more: &[(&str, &str)]) -> PathBuf {
        let place = format!("pci0000:00/0000:00:{slot:02x}.0/virtio{slot}/block/{name}");
        let real = self.block(&place, &[("size", &sectors.to_string()), ("dev", &format!("254:{slot}"))]);
        symlink("../..", real.join("device")).unwrap();
        for (file, value) in more {
            self.attribute(&real, file, value.as_bytes());
        }
        real
    }

    /// A SCSI disk of so many sectors at this place below a PCI slot, `host…` to `H:C:T:L`; what describes the disk
    /// goes into its device directory.
    pub(super) fn scsi(&self, name: &str, below: &str, sectors: u64, device: &[(&str, &str)]) -> PathBuf {
        let place = format!("pci0000:00/0000:00:05.0/{below}/block/{name}");
        let real = self.block(&place, &[("size", &sectors.to_string()), ("dev", "8:0")]);
        symlink("../..", real.join("device")).unwrap();
        for (file, value) in device {
            self.attribute(real.parent().unwrap().parent().unwrap(), file, value.as_bytes());
        }
        real
    }

    /// A partition with its device number.
    pub(super) fn partition(&self, disk: &Path, name: &str, number: u32, dev: &str) {
        self.attribute(disk, &format!("{name}/partition"), number.to_string().as_bytes());
        self.attribute(disk, &format!("{name}/dev"), dev.as_bytes());
        fs::write(self.roots.dev.join(name), "").unwrap();
    }

    pub(super) fn attribute(&self, dir: &Path, file: &str, value: &[u8]) {
        let path = dir.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, [value, b"\n"].concat()).unwrap();
    }

    pub(super) fn mounts(&self, mountinfo: &str) {
        fs::write(self.roots.proc.join("self/mountinfo"), mountinfo).unwrap();
    }

    pub(super) fn swaps(&self, areas: &str) {
        fs::write(self.roots.proc.join("swaps"), format!("Filename Type Size\n{areas}")).unwrap();
    }
}
