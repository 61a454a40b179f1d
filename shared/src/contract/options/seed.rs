//! `farrier.seed`: who in the installed system reads the user-data.

use std::fmt;
use std::str::FromStr;

use super::NotAccepted;

/// Who in the installed system reads the user-data, and so where it is planted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SeedKind {
    /// The image's own tools, from the partition labelled COS_OEM.
    #[default]
    CosOem,
    /// cloud-init, by its datasource NoCloud.
    NoCloud,
    /// cloud-init and others, from an OpenStack config drive.
    ConfigDrive,
    /// Ignition.
    Ignition,
}

impl FromStr for SeedKind {
    type Err = NotAccepted;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "cos-oem" => Ok(Self::CosOem),
            "nocloud" => Ok(Self::NoCloud),
            "configdrive" => Ok(Self::ConfigDrive),
            "ignition" => Ok(Self::Ignition),
            other => Err(NotAccepted::new(other, "cos-oem, nocloud, configdrive or ignition")),
        }
    }
}

impl fmt::Display for SeedKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::CosOem => "cos-oem",
            Self::NoCloud => "nocloud",
            Self::ConfigDrive => "configdrive",
            Self::Ignition => "ignition",
        })
    }
}
