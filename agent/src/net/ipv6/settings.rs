//! How the kernel is to treat IPv6 on an interface.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Whether routers are heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::net) enum Autoconf {
    /// The kernel makes addresses of advertised prefixes; default routes are ours to set, so that an interface that
    /// does not lead to the controller gets none.
    Addresses,
    /// Not at all.
    Off,
}

/// Longest wait between solicitations of a router, in seconds: the kernel's own hour would miss a port that comes
/// out of spanning-tree learning after a minute.
const SOLICITATION_PAUSE: &str = "8";

/// Tells the kernel; to be done before the interface is set up. `root` is where `/proc` is.
///
/// # Errors
/// When the kernel has no IPv6.
pub(in crate::net) fn prepare(root: &Path, interface: &str, autoconf: Autoconf) -> io::Result<()> {
    let dir = directory(root, interface);
    let on = if autoconf == Autoconf::Addresses { "1" } else { "0" };
    // Last the one that starts it all.
    for (setting, value) in [
        ("accept_ra", on),
        ("autoconf", on),
        ("accept_ra_pinfo", on),
        ("accept_ra_mtu", on),
        ("accept_ra_defrtr", "0"),
        // The address firmware had, so that an allow-list of hosts fits; and no others.
        ("addr_gen_mode", "0"),
        ("use_tempaddr", "0"),
        ("router_solicitations", "-1"),
        ("router_solicitation_max_interval", SOLICITATION_PAUSE),
    ] {
        if let Err(error) = fs::write(dir.join(setting), value) {
            tracing::debug!(interface, setting, %error, "IPv6 setting not taken");
        }
    }
    fs::write(dir.join("disable_ipv6"), "0")
}

/// Lets the kernel follow the routers' word by itself, now that this interface is the one in use: it notices a
/// router that is gone.
pub(in crate::net) fn use_default_routers(root: &Path, interface: &str) {
    if let Err(error) = fs::write(directory(root, interface).join("accept_ra_defrtr"), "1") {
        tracing::debug!(interface, %error, "default routers are ours to keep");
    }
}

/// Has the kernel run no IPv6 on an interface.
pub(in crate::net) fn disable(root: &Path, interface: &str) {
    if let Err(error) = fs::write(directory(root, interface).join("disable_ipv6"), "1") {
        tracing::debug!(interface, %error, "IPv6 not disabled");
    }
}

fn directory(root: &Path, interface: &str) -> PathBuf {
    // A dot in an interface's name, as VLANs have it, is a plain dot here.
    root.join("proc/sys/net/ipv6/conf").join(interface)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> (tempfile::TempDir, PathBuf) {
        let root = tempfile::tempdir().unwrap();
        let dir = directory(root.path(), "vlan2.7");
        fs::create_dir_all(&dir).unwrap();
        (root, dir)
    }

    #[test]
    fn routers_are_heard_or_not_and_default_routes_come_later() {
        for (autoconf, on) in [(Autoconf::Addresses, "1"), (Autoconf::Off, "0")] {
            let (root, dir) = tree();
            let read = |setting: &str| fs::read_to_string(dir.join(setting)).unwrap();
            prepare(root.path(), "vlan2.7", autoconf).unwrap();
            assert_eq!((read("accept_ra"), read("autoconf")), (on.to_owned(), on.to_owned()));
            assert_eq!((read("disable_ipv6"), read("accept_ra_defrtr")), ("0".to_owned(), "0".to_owned()));
            use_default_routers(root.path(), "vlan2.7");
            assert_eq!(read("accept_ra_defrtr"), "1");
        }
    }

    #[test]
    fn a_kernel_without_ipv6_is_an_error() {
        let root = tempfile::tempdir().unwrap();
        assert!(prepare(root.path(), "eth0", Autoconf::Addresses).is_err());
    }
}
