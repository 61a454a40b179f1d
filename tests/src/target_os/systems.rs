//! The systems that images hold: packages, files laid over them, services.

use super::overlay::{self, File};

/// A system to unpack and to put on a disk: everything that decides what is in it, the code that does so aside. Each
/// has a greeter that starts by itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct System {
    /// What its images' files are named after.
    pub(super) name: &'static str,
    /// Packages besides Debian's essential ones, with commas.
    pub(super) own_packages: &'static str,
    /// Patterns of files that are left out of packages besides the usual ones.
    pub(super) left_out: &'static [&'static str],
    /// Files laid over the packages besides the usual ones.
    pub(super) own_files: &'static [File],
    /// Whether there is a COS_OEM partition, mounted on `/oem`.
    pub(super) oem: bool,
}

/// What every system is made of besides Debian's essential packages.
const USUAL_PACKAGES: &str = "initramfs-tools,kmod,linux-image-amd64,systemd-boot-efi,systemd-sysv,udev,zstd";

/// Tells what lies in its COS_OEM partition.
pub(super) const PLAIN: System =
    System { name: "debian", own_packages: "", left_out: &[], own_files: &overlay::PLAIN, oem: true };

/// Has Debian's cloud-init, and the server that this expects to configure; tells what it made of its seed.
pub(super) const CLOUD: System = System {
    name: "debian-cloud-init",
    own_packages: "cloud-init,openssh-server",
    // What locales are generated from, which none is.
    left_out: &["/usr/share/i18n/*"],
    own_files: &overlay::CLOUD,
    oem: false,
};

impl System {
    pub(super) fn packages(&self) -> String {
        [USUAL_PACKAGES, self.own_packages].join(",").trim_end_matches(',').to_owned()
    }

    pub(super) fn files(&self) -> impl Iterator<Item = &'static File> {
        overlay::USUAL.iter().chain(self.own_files)
    }
}
