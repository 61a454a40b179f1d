//! Ethernet addresses and their two spellings on the wire.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A 48-bit Ethernet address; shown as lower-case `aa:bb:cc:dd:ee:ff`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct MacAddress([u8; 6]);

/// Why a text is not a [`MacAddress`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{found:?} is not a MAC address: expected six two-digit hex numbers such as 52:54:00:12:34:56")]
pub struct MacAddressError {
    /// What was given, cut to a printable length.
    pub found: String,
}

impl MacAddress {
    /// The address of these six bytes.
    pub const fn from_bytes(bytes: [u8; 6]) -> Self {
        Self(bytes)
    }

    /// The six bytes.
    pub fn as_bytes(&self) -> [u8; 6] {
        self.0
    }

    /// The value of `BOOTIF`: hardware type 01 and dashes, `01-aa-bb-cc-dd-ee-ff`.
    pub fn to_bootif(self) -> String {
        format!("01-{}", self.to_string().replace(':', "-"))
    }

    /// Reads the value of `BOOTIF`.
    ///
    /// # Errors
    /// When the value is not `01-` and a dashed address.
    pub fn from_bootif(text: &str) -> Result<Self, MacAddressError> {
        text.strip_prefix("01-")
            .filter(|rest| !rest.contains(':'))
            .and_then(|rest| rest.replace('-', ":").parse().ok())
            .ok_or_else(|| MacAddressError { found: text.chars().take(64).collect() })
    }
}

impl FromStr for MacAddress {
    type Err = MacAddressError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || MacAddressError { found: text.chars().take(64).collect() };
        let mut bytes = [0_u8; 6];
        let mut parts = text.split(':');
        for byte in &mut bytes {
            let part = parts.next().filter(|p| p.len() == 2 && !p.starts_with('+')).ok_or_else(error)?;
            *byte = u8::from_str_radix(part, 16).map_err(|_| error())?;
        }
        if parts.next().is_some() { Err(error()) } else { Ok(Self(bytes)) }
    }
}

impl TryFrom<String> for MacAddress {
    type Error = MacAddressError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<MacAddress> for String {
    fn from(mac: MacAddress) -> Self {
        mac.to_string()
    }
}

impl fmt::Display for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl fmt::Debug for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
