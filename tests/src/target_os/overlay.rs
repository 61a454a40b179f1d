//! Files laid over the unpacked Debian.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use anyhow::{Context as _, Result};

use super::systems::System;

/// Path, mode and content.
pub(super) type File = (&'static str, u32, &'static str);

/// In every system.
pub(super) const USUAL: [File; 4] = [
    ("usr/local/sbin/farrier-report", 0o755, include_str!("report.sh")),
    ("etc/hostname", 0o644, "farrier-target\n"),
    // Only what a virtual machine needs, so that the firmware has less to load.
    ("etc/initramfs-tools/conf.d/farrier", 0o644, "MODULES=list\nCOMPRESS=zstd\n"),
    ("etc/initramfs-tools/modules", 0o644, "virtio_pci\nvirtio_blk\nvirtio_scsi\nnvme\nahci\nsd_mod\next4\n"),
];

/// Where the user-data lies in COS_OEM.
pub(super) const PLAIN: [File; 4] = [
    ("usr/local/sbin/farrier-greeter", 0o755, include_str!("greeter.sh")),
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
];

/// Where cloud-init reads the user-data, and configures the network too.
pub(super) const CLOUD: [File; 5] = [
    ("usr/local/sbin/farrier-greeter", 0o755, include_str!("cloud_greeter.sh")),
    (
        // cloud-init's last stage comes after multi-user.target; what that target waits for cannot wait for the stage.
        "etc/systemd/system/farrier-greeter.service",
        0o644,
        "[Unit]\nDescription=Say what cloud-init made of its seed\nAfter=cloud-final.service\n\n\
         [Service]\nType=oneshot\nExecStart=/usr/local/sbin/farrier-greeter\n\n[Install]\nWantedBy=graphical.target\n",
    ),
    // Else one would be generated on the first boot, for minutes of an emulated processor.
    ("etc/default/locale", 0o644, "LANG=C.UTF-8\n"),
    // All else is as the package has it, the search for a data source included.
    (
        "etc/cloud/cloud.cfg.d/95_lab.cfg",
        0o644,
        "# Others take an emulated processor long.\nssh_genkeytypes: [ed25519]\n",
    ),
    ("etc/fstab", 0o644, "LABEL=farrier-root / ext4 errors=remount-ro 0 1\n"),
];

/// Writes the overlay of a system under `dir`.
///
/// # Errors
/// When a file cannot be written.
pub(super) fn stage(system: &System, dir: &Path) -> Result<()> {
    for (path, mode, content) in system.files() {
        let path = dir.join(path);
        let parent = path.parent().context("an overlay file has a directory")?;
        fs::create_dir_all(parent).with_context(|| format!("create {}", parent.display()))?;
        fs::write(&path, content).with_context(|| format!("write {}", path.display()))?;
        fs::set_permissions(&path, fs::Permissions::from_mode(*mode))?;
    }
    if system.oem {
        fs::create_dir_all(dir.join("oem")).context("create the mount point /oem")?;
    }
    Ok(())
}
