//! SHA-256 digests in the contract's text form, `sha256:` and 64 lower-case hex digits.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The digest of the served bytes of an image (contract section 5, `beskar7.target-digest`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest([u8; 32]);

/// Why a text is not a [`Digest`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{found:?} is not a digest: expected `sha256:` followed by 64 lower-case hex digits")]
pub struct DigestError {
    /// What was given, cut to a printable length.
    pub found: String,
}

impl Digest {
    /// The digest whose 32 raw bytes these are.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The 32 raw bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The 64 lower-case hex digits without the `sha256:` prefix.
    pub fn to_hex(&self) -> String {
        hex::encode(self.0)
    }
}

impl FromStr for Digest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || DigestError { found: text.chars().take(80).collect() };
        let digits = text.strip_prefix("sha256:").ok_or_else(error)?;
        if digits.bytes().any(|b| b.is_ascii_uppercase()) {
            return Err(error());
        }
        let mut bytes = [0_u8; 32];
        hex::decode_to_slice(digits, &mut bytes).map_err(|_| error())?;
        Ok(Self(bytes))
    }
}

impl TryFrom<String> for Digest {
    type Error = DigestError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.to_string()
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.to_hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
