//! The root file system: a minimal Debian with systemd and a kernel.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::overlay;
use super::systems::System;
use crate::tool;

/// Never read in a machine that lives for a minute.
const LEFT_OUT: [&str; 6] = [
    "/usr/share/doc/*",
    "/usr/share/info/*",
    "/usr/share/locale/*",
    "/usr/share/man/*",
    "/boot/System.map-*",
    "/lib/modules/*/kernel/*",
];
/// Modules of virtual machines, for what the line above leaves out.
const MODULES: [&str; 22] = [
    "arch/x86/crypto/*",
    "block/*",
    "crypto/*",
    "drivers/ata/*",
    "drivers/block/virtio_blk.ko",
    "drivers/char/hw_random/*",
    "drivers/net/net_failover.ko",
    "drivers/net/virtio_net.ko",
    "drivers/nvme/*",
    "drivers/scsi/s[cd]*",
    "drivers/scsi/virtio_scsi.ko",
    "drivers/virtio/*",
    "fs/efivarfs/*",
    "fs/ext4/*",
    "fs/fat/*",
    "fs/isofs/*",
    "fs/jbd2/*",
    "fs/mbcache.ko",
    "fs/nls/*",
    "lib/*",
    "net/core/failover.ko",
    "net/ipv6/*",
];

/// Unpacks a system under `scratch` and returns the root directory.
///
/// # Errors
/// When mmdebstrap fails, which is mostly a package source that does not answer.
pub(super) fn bootstrap(system: &System, scratch: &Path) -> Result<PathBuf> {
    let root = scratch.join("root");
    let staged = scratch.join("overlay");
    overlay::stage(system, &staged)?;
    let mut command = Command::new("mmdebstrap");
    command.args(["--variant=minbase", "--format=directory", "--include", &system.packages()]);
    command.arg(format!("--aptopt={}", apt_options(scratch)?.display()));
    let left_out = LEFT_OUT.iter().chain(system.left_out);
    command.args(left_out.map(|path| format!("--dpkgopt=path-exclude={path}")));
    command.args(MODULES.map(|path| format!("--dpkgopt=path-include=/lib/modules/*/kernel/{path}")));
    // Before the kernel is configured, so that its initramfs is built as the overlay says.
    command.arg(format!("--essential-hook=sync-in {} /", staged.display()));
    command.arg("--customize-hook=chroot \"$1\" systemctl enable systemd-networkd farrier-greeter");
    command.args(["--customize-hook=rm -f \"$1\"/var/log/*.log \"$1\"/var/cache/debconf/*-old"]);
    // This machine's name servers, which mmdebstrap copies, are out of reach where the image runs.
    command.arg("--customize-hook=: > \"$1\"/etc/resolv.conf");
    command.arg(codename()?).arg(&root).arg(sources()?);
    tool::run(&mut command)?;
    Ok(root)
}

/// The machine's own apt settings, so that a site's proxy or cache rules apply to the image as well.
fn apt_options(scratch: &Path) -> Result<PathBuf> {
    let mut text = String::from("APT::Install-Recommends \"false\";\n");
    for line in tool::stdout(Command::new("apt-config").arg("dump"))?.lines() {
        if line.starts_with("Acquire::") && line.contains(" \"") {
            text.push_str(line);
            text.push('\n');
        }
    }
    let path = scratch.join("apt.conf");
    fs::write(&path, text).with_context(|| format!("write {}", path.display()))?;
    Ok(path)
}

/// The file that names this machine's Debian archive: its own, so that no address is written here. Under its usual
/// name, else the first that serves this release.
fn sources() -> Result<PathBuf> {
    let known = ["/etc/apt/sources.list.d/debian.sources", "/etc/apt/sources.list"].map(PathBuf::from);
    let release = codename()?;
    let mut others: Vec<PathBuf> = fs::read_dir("/etc/apt/sources.list.d")
        .map(|entries| entries.flatten().map(|entry| entry.path()).collect())
        .unwrap_or_default();
    others.retain(|path| path.extension().is_some_and(|e| e == "sources" || e == "list"));
    others.sort();
    known
        .into_iter()
        .chain(others)
        .find(|path| fs::read_to_string(path).is_ok_and(|text| serves(&text, &release)))
        .with_context(|| {
            format!("no file in /etc/apt serves Debian {release}; the target OS is made from this machine's sources")
        })
}

/// Whether a file of apt names the release in a line that is no comment.
fn serves(sources: &str, release: &str) -> bool {
    let mut lines = sources.lines().filter(|line| !line.trim_start().starts_with('#'));
    lines.any(|line| line.split_whitespace().any(|word| word == release))
}

/// This machine's Debian release, which is the one its sources serve.
fn codename() -> Result<String> {
    let text = fs::read_to_string("/etc/os-release").context("read /etc/os-release")?;
    let field = |key: &str| {
        text.lines().find_map(|line| line.strip_prefix(key)).map(|value| value.trim_matches('"').to_owned())
    };
    let id = field("ID=").unwrap_or_default();
    ensure!(id == "debian", "the target OS is made from Debian's packages, but this system is {id:?}");
    field("VERSION_CODENAME=").context("/etc/os-release has no VERSION_CODENAME")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_serves_the_releases_it_names_outside_of_comments() {
        for (sources, expected) in [
            ("deb http://archive/debian bookworm main\n", true),
            ("Types: deb\nSuites: bookworm bookworm-updates\n", true),
            ("# deb http://archive/debian bookworm main\n", false),
            ("Types: deb\nSuites: bookworm-updates\n", false),
            ("", false),
        ] {
            assert_eq!(serves(sources, "bookworm"), expected, "{sources:?}");
        }
    }
}
