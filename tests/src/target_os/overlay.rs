//! Files laid over the unpacked Debian.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use anyhow::{Context as _, Result};

/// What the installed system runs on its first boot.
pub(super) const GREETER: &str = include_str!("greeter.sh");

/// Path, mode and content of each file.
const FILES: [(&str, u32, &str); 7] = [
    ("usr/local/sbin/farrier-greeter", 0o755, GREETER),
    (
        "etc/systemd/system/farrier-greeter.service",
        0o644,
        "[Unit]\nDescription=Say what was planted for this machine\nRequiresMountsFor=/oem\nAfter=systemd-networkd.service\n\n\
         [Service]\nType=oneshot\nExecStart=/usr/local/sbin/farrier-greeter\n\n[Install]\nWantedBy=multi-user.target\n",
    ),
    (
        "etc/systemd/network/10-lab.network",
        0o644,
        "[Match]\nType=ether\n\n[Network]\nDHCP=ipv4\nIPv6AcceptRA=yes\n\n[DHCPv4]\nClientIdentifier=mac\n",
    ),
    (
        "etc/fstab",
        0o644,
        "LABEL=farrier-root / ext4 errors=remount-ro 0 1\nLABEL=COS_OEM /oem ext4 ro,nodev,nosuid,noexec 0 2\n",
    ),
    ("etc/hostname", 0o644, "farrier-target\n"),
    // Only what a virtual machine needs, so that the firmware has less to load.
    ("etc/initramfs-tools/conf.d/farrier", 0o644, "MODULES=list\nCOMPRESS=zstd\n"),
    ("etc/initramfs-tools/modules", 0o644, "virtio_pci\nvirtio_blk\nvirtio_scsi\nnvme\nahci\nsd_mod\next4\n"),
];

/// Writes the overlay under `dir`.
///
/// # Errors
/// When a file cannot be written.
pub(super) fn stage(dir: &Path) -> Result<()> {
    for (path, mode, content) in FILES {
        let path = dir.join(path);
        let parent = path.parent().context("an overlay file has a directory")?;
        fs::create_dir_all(parent).with_context(|| format!("create {}", parent.display()))?;
        fs::write(&path, content).with_context(|| format!("write {}", path.display()))?;
        fs::set_permissions(&path, fs::Permissions::from_mode(mode))?;
    }
    fs::create_dir_all(dir.join("oem")).context("create the mount point /oem")?;
    Ok(())
}
