//! `farrier.efi-boot`: where the installed system goes in a UEFI machine's boot order.

use std::fmt;
use std::str::FromStr;

use super::NotAccepted;

/// Order of the boot entries after an installation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum EfiBoot {
    /// Network entries stay ahead of the disk, so that the machine can be had back through the network.
    #[default]
    NetworkFirst,
    /// The disk ahead of everything.
    DiskFirst,
    /// The firmware's variables are not touched.
    Off,
}

impl FromStr for EfiBoot {
    type Err = NotAccepted;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "network-first" => Ok(Self::NetworkFirst),
            "disk-first" => Ok(Self::DiskFirst),
            "off" => Ok(Self::Off),
            other => Err(NotAccepted::new(other, "network-first, disk-first or off")),
        }
    }
}

impl fmt::Display for EfiBoot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NetworkFirst => "network-first",
            Self::DiskFirst => "disk-first",
            Self::Off => "off",
        })
    }
}
