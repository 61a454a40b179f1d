//! The file systems an initramfs starts without.

use std::fs;
use std::path::Path;

use nix::errno::Errno;
use nix::mount::{MsFlags, mount};

struct Mount {
    kind: &'static str,
    at: &'static str,
    flags: MsFlags,
    data: Option<&'static str>,
}

const STRICT: MsFlags = MsFlags::MS_NOSUID.union(MsFlags::MS_NOEXEC).union(MsFlags::MS_NODEV);

const MOUNTS: [Mount; 5] = [
    Mount { kind: "proc", at: "/proc", flags: STRICT, data: None },
    Mount { kind: "sysfs", at: "/sys", flags: STRICT, data: None },
    Mount {
        kind: "devtmpfs",
        at: "/dev",
        flags: MsFlags::MS_NOSUID.union(MsFlags::MS_NOEXEC),
        data: Some("mode=0755"),
    },
    // Private device nodes are made in /run while the seed is planted: no `nodev` here.
    Mount {
        kind: "tmpfs",
        at: "/run",
        flags: MsFlags::MS_NOSUID.union(MsFlags::MS_NOEXEC),
        data: Some("mode=0755,size=64m"),
    },
    Mount { kind: "tmpfs", at: "/tmp", flags: STRICT, data: Some("mode=1777,size=64m") },
];

/// Mounts them all; gives what went wrong, for a log that does not exist yet.
///
/// A mount point that is in use already was mounted by the kernel and is fine. Nothing here stops the run: what
/// truly needs a missing mount fails by itself, with a better reason.
pub(super) fn mount_all() -> Vec<String> {
    let mut failures = Vec::new();
    for m in &MOUNTS {
        // The directory may be there, or the root read-only: mounting tells.
        let _ = fs::create_dir_all(m.at);
        match mount(Some(m.kind), m.at, Some(m.kind), m.flags, m.data) {
            Ok(()) | Err(Errno::EBUSY) => {}
            Err(errno) => failures.push(format!("{} not mounted on {}: {errno}", m.kind, m.at)),
        }
    }
    failures
}

/// Mounts the firmware's variables, where there are any. Only once drivers are loaded: the kernel has efivarfs as a
/// module, and knows no such file system before.
pub(super) fn mount_firmware_variables(root: &Path) {
    let at = root.join("sys/firmware/efi/efivars");
    if !at.exists() {
        return;
    }
    match mount(Some("efivarfs"), &at, Some("efivarfs"), STRICT, None::<&str>) {
        Ok(()) | Err(Errno::EBUSY) => {}
        Err(errno) => tracing::warn!(%errno, "firmware variables not mounted; no boot entry will be made"),
    }
}
