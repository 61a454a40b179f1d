//! `farrier.verify`: whether the medium is read back.

use std::fmt;
use std::str::FromStr;

use super::NotAccepted;

/// Whether the medium is read back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Verify {
    /// Where the image is not too large for the time it takes; the agent knows the bound.
    #[default]
    Auto,
    /// Always.
    ReadBack,
    /// Both ends of the disk only.
    Off,
}

impl FromStr for Verify {
    type Err = NotAccepted;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "auto" => Ok(Self::Auto),
            "readback" => Ok(Self::ReadBack),
            "off" => Ok(Self::Off),
            other => Err(NotAccepted::new(other, "auto, readback or off")),
        }
    }
}

impl fmt::Display for Verify {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::ReadBack => "readback",
            Self::Off => "off",
        })
    }
}
