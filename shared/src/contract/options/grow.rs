//! `farrier.grow`: what becomes of the room behind the image.

use std::fmt;
use std::str::FromStr;

use super::NotAccepted;

/// Which partition takes the rest of the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Grow {
    /// None: the table stays as the image has it.
    #[default]
    Off,
    /// The last partition of a GPT. Its file system is left to the installed system.
    Last,
}

impl FromStr for Grow {
    type Err = NotAccepted;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "off" => Ok(Self::Off),
            "last" => Ok(Self::Last),
            other => Err(NotAccepted::new(other, "off or last")),
        }
    }
}

impl fmt::Display for Grow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Off => "off",
            Self::Last => "last",
        })
    }
}
