//! The disk around the root file system: GPT, EFI system partition, COS_OEM, root.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::partitions::{self, Layout, MIB, Partition};
use crate::tool;

/// Kernel, initramfs and loader take about half of it.
const ESP_SIZE: u64 = 56 * MIB;
/// User-data and the provider id.
const OEM_SIZE: u64 = 16 * MIB;
/// Room for what a first boot writes: journal, machine id.
const ROOT_SPARE: u64 = 48 * MIB;

const LOADER: &str = "timeout 0\ndefault debian.conf\nconsole-mode keep\n";
/// Without the check, an emulated timer that ticks late is no panic.
const ENTRY: &str = "title Debian\nlinux /vmlinuz\ninitrd /initrd.img\n\
                     options root=LABEL=farrier-root ro console=ttyS0,115200 systemd.show_status=0 quiet \
                     no_timer_check panic=5\n";

/// Makes the disk image `out` of the directory `root`.
///
/// # Errors
/// When a file system cannot be made or does not hold what it must.
pub(super) fn assemble(root: &Path, scratch: &Path, out: &Path) -> Result<()> {
    let esp = esp(root, scratch)?;
    let oem = partitions::ext4(&scratch.join("oem.ext4"), OEM_SIZE, "COS_OEM", None)?;
    let size = (used(root)? + ROOT_SPARE).next_multiple_of(4 * MIB);
    let root_fs = partitions::ext4(&scratch.join("root.ext4"), size, "farrier-root", Some(root))?;
    Layout {
        parts: vec![
            Partition { name: "esp", kind: partitions::ESP, content: esp },
            Partition { name: "oem", kind: partitions::LINUX, content: oem },
            Partition { name: "root", kind: partitions::LINUX, content: root_fs },
        ],
    }
    .write(out)
}

/// The EFI system partition: systemd-boot on the path every firmware tries, and what it loads.
fn esp(root: &Path, scratch: &Path) -> Result<PathBuf> {
    let image = scratch.join("esp.fat");
    fs::File::create(&image)?.set_len(ESP_SIZE).context("size the EFI system partition")?;
    tool::run(Command::new("mkfs.vfat").args(["-n", "ESP", "-i", "FA221E12", "--invariant"]).arg(&image))?;
    for dir in ["::/EFI", "::/EFI/BOOT", "::/loader", "::/loader/entries"] {
        tool::run(Command::new("mmd").arg("-i").arg(&image).arg(dir))?;
    }
    let loader = scratch.join("loader.conf");
    let entry = scratch.join("debian.conf");
    fs::write(&loader, LOADER)?;
    fs::write(&entry, ENTRY)?;
    let files = [
        (root.join("usr/lib/systemd/boot/efi/systemd-bootx64.efi"), "::/EFI/BOOT/BOOTX64.EFI"),
        (newest(root, "vmlinuz-")?, "::/vmlinuz"),
        (newest(root, "initrd.img-")?, "::/initrd.img"),
        (loader, "::/loader/loader.conf"),
        (entry, "::/loader/entries/debian.conf"),
    ];
    for (from, to) in files {
        tool::run(Command::new("mcopy").arg("-i").arg(&image).arg(from).arg(to))?;
    }
    Ok(image)
}

/// The last file of /boot whose name starts so; there is one kernel.
fn newest(root: &Path, prefix: &str) -> Result<PathBuf> {
    let boot = root.join("boot");
    let mut found: Vec<PathBuf> = fs::read_dir(&boot)
        .with_context(|| format!("read {}", boot.display()))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(prefix)))
        .collect();
    found.sort();
    found.pop().with_context(|| format!("no {prefix}* in {}", boot.display()))
}

/// Bytes the tree takes on a file system with 4 KiB blocks, with a twentieth for the file system itself.
fn used(root: &Path) -> Result<u64> {
    let text = tool::stdout(Command::new("du").args(["--summarize", "--block-size=1"]).arg(root))?;
    let bytes: u64 =
        text.split_whitespace().next().unwrap_or_default().parse().context("read du's answer")?;
    Ok(bytes + bytes / 20)
}
