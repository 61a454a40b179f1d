//! The disk around the root file system: GPT, EFI system partition, COS_OEM, root.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::partitions::{self, Kind, Layout, MIB, Partition, Sector};
use crate::tool;

/// Kernel, initramfs and loader take about half of it.
const ESP_SIZE: u64 = 56 * MIB;
/// What a BIOS runs: it starts the loader in the first partition that is marked for it. From Debian's
/// `syslinux-common`.
const BOOT_CODE: &str = "/usr/lib/syslinux/mbr/gptmbr.bin";
/// User-data and the provider id.
const OEM_SIZE: u64 = 16 * MIB;
/// Room for what a first boot writes: journal, machine id.
const ROOT_SPARE: u64 = 48 * MIB;

const LOADER: &str = "timeout 0\ndefault debian.conf\nconsole-mode keep\n";
/// Without the check, an emulated timer that ticks late is no panic.
const OPTIONS: &str = "root=LABEL=farrier-root ro console=ttyS0,115200 systemd.show_status=0 quiet \
                       no_timer_check panic=5";

/// Makes the disk image `out` of the directory `root`, which UEFI boots and, with sectors of 512 bytes, a BIOS
/// as well; with COS_OEM or without.
///
/// # Errors
/// When a file system cannot be made or does not hold what it must.
pub(super) fn assemble(root: &Path, scratch: &Path, sector: Sector, oem: bool, out: &Path) -> Result<()> {
    let esp = esp(root, scratch, sector)?;
    let boot_code = match sector {
        Sector::B512 => fs::read(BOOT_CODE)
            .with_context(|| format!("read {BOOT_CODE}; `make deps` installs syslinux-common"))?,
        Sector::B4096 => Vec::new(),
    };
    let size = (used(root)? + ROOT_SPARE).next_multiple_of(4 * MIB);
    let root_fs = partitions::ext4(&scratch.join("root.ext4"), size, "farrier-root", Some(root))?;
    let mut parts = vec![Partition { name: "esp", kind: Kind::Esp, content: esp }];
    if oem {
        let content = partitions::ext4(&scratch.join("oem.ext4"), OEM_SIZE, "COS_OEM", None)?;
        parts.push(Partition { name: "oem", kind: Kind::Linux, content });
    }
    parts.push(Partition { name: "root", kind: Kind::Linux, content: root_fs });
    Layout { parts, sector, boot_code }.write(out)
}

/// The EFI system partition: systemd-boot on the path every firmware tries, SYSLINUX where a BIOS looks for it,
/// and what they load.
fn esp(root: &Path, scratch: &Path, sector: Sector) -> Result<PathBuf> {
    let image = scratch.join("esp.fat");
    fs::File::create(&image)?.set_len(ESP_SIZE).context("size the EFI system partition")?;
    let sector_size = sector.bytes().to_string();
    let mut mkfs = Command::new("mkfs.vfat");
    mkfs.args(["-n", "ESP", "-i", "FA221E12", "--invariant", "-S", &sector_size]).arg(&image);
    tool::run(&mut mkfs)?;
    for dir in ["::/EFI", "::/EFI/BOOT", "::/loader", "::/loader/entries"] {
        tool::run(Command::new("mmd").arg("-i").arg(&image).arg(dir))?;
    }
    let [loader, entry, bios] = ["loader.conf", "debian.conf", "syslinux.cfg"].map(|name| scratch.join(name));
    fs::write(&loader, LOADER)?;
    fs::write(&entry, format!("title Debian\nlinux /vmlinuz\ninitrd /initrd.img\noptions {OPTIONS}\n"))?;
    fs::write(
        &bios,
        format!("DEFAULT debian\nLABEL debian\nLINUX /vmlinuz\nINITRD /initrd.img\nAPPEND {OPTIONS}\n"),
    )?;
    let files = [
        (root.join("usr/lib/systemd/boot/efi/systemd-bootx64.efi"), "::/EFI/BOOT/BOOTX64.EFI"),
        (newest(root, "vmlinuz-")?, "::/vmlinuz"),
        (newest(root, "initrd.img-")?, "::/initrd.img"),
        (loader, "::/loader/loader.conf"),
        (entry, "::/loader/entries/debian.conf"),
        (bios, "::/syslinux.cfg"),
    ];
    for (from, to) in files {
        tool::run(Command::new("mcopy").arg("-i").arg(&image).arg(from).arg(to))?;
    }
    if sector == Sector::B512 {
        tool::run(Command::new("syslinux").arg("--install").arg(&image))?;
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
