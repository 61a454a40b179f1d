//! `farrier.on-failure`: what becomes of the machine when the run fails.

use std::fmt;
use std::str::FromStr;

use super::NotAccepted;

/// What becomes of the machine when the run fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnFailure {
    /// Off, so that it neither loops nor boots what was not verified.
    #[default]
    PowerOff,
    /// Into whatever the firmware finds.
    Reboot,
}

impl FromStr for OnFailure {
    type Err = NotAccepted;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "poweroff" => Ok(Self::PowerOff),
            "reboot" => Ok(Self::Reboot),
            other => Err(NotAccepted::new(other, "poweroff or reboot")),
        }
    }
}

impl fmt::Display for OnFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::PowerOff => "poweroff",
            Self::Reboot => "reboot",
        })
    }
}
