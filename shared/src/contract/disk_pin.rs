//! The operator's choice of target disk.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A device path, a `/dev/disk/by-*` link or a bare kernel name: `^[A-Za-z0-9._:/+-]+$` (contract section 13).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct DiskPin(String);

/// Why a text is not a [`DiskPin`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{found:?} is not a disk: expected a path such as /dev/sda or /dev/disk/by-id/… of letters, digits and ._:/+-"
)]
pub struct DiskPinError {
    /// What was given, cut to a printable length.
    pub found: String,
}

impl DiskPin {
    /// The text as given.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for DiskPin {
    type Err = DiskPinError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let allowed = |b: u8| b.is_ascii_alphanumeric() || b"._:/+-".contains(&b);
        if !text.is_empty() && text.len() <= 512 && text.bytes().all(allowed) {
            Ok(Self(text.to_owned()))
        } else {
            Err(DiskPinError { found: text.chars().take(80).collect() })
        }
    }
}

impl TryFrom<String> for DiskPin {
    type Error = DiskPinError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<DiskPin> for String {
    fn from(pin: DiskPin) -> Self {
        pin.0
    }
}

impl fmt::Display for DiskPin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
