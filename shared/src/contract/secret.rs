//! The two per-run secrets: the callback token and the boot nonce.
//!
//! Both are 32 random bytes as 43 characters of unpadded base64url (contract section 6). They are redacted
//! in `Debug`, compared in constant time, and zeroized on drop. Neither implements `Display`: the plain text
//! leaves only through [`Token::expose`] and [`BootNonce::expose`], which are easy to find in a review.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use zeroize::{Zeroize, ZeroizeOnDrop};

/// Length of either secret in characters.
pub const TEXT_LEN: usize = 43;

/// Why a text is not a token or nonce. Says nothing of the text itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a {what}: expected {TEXT_LEN} characters of unpadded base64url (the value is withheld)")]
pub struct SecretError {
    /// Which secret was being parsed.
    pub what: &'static str,
}

macro_rules! secret_text {
    ($(#[$doc:meta])* $name:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, Zeroize, ZeroizeOnDrop)]
        pub struct $name(String);

        impl $name {
            /// The secret made of these random bytes.
            pub fn from_random(mut bytes: [u8; 32]) -> Self {
                let secret = Self(URL_SAFE_NO_PAD.encode(bytes));
                bytes.zeroize();
                secret
            }

            /// The plain text. Never log it, never put it into an error.
            pub fn expose(&self) -> &str {
                &self.0
            }

            /// Lower-case hex SHA-256 of the text: what status mirrors and consume records hold.
            pub fn sha256_hex(&self) -> String {
                hex::encode(Sha256::digest(self.0.as_bytes()))
            }

            /// Whether `presented` is this secret, in time that does not depend on where they differ.
            pub fn matches(&self, presented: &str) -> bool {
                Sha256::digest(presented.as_bytes()).ct_eq(&Sha256::digest(self.0.as_bytes())).into()
            }
        }

        impl FromStr for $name {
            type Err = SecretError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                let url_safe = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
                if text.len() == TEXT_LEN && text.bytes().all(url_safe) {
                    Ok(Self(text.to_owned()))
                } else {
                    Err(SecretError { what: $what })
                }
            }
        }

        impl PartialEq for $name {
            fn eq(&self, other: &Self) -> bool {
                self.matches(other.expose())
            }
        }

        impl Eq for $name {}

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(concat!(stringify!($name), "(redacted)"))
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = zeroize::Zeroizing::new(String::deserialize(deserializer)?);
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

secret_text! {
    /// The bearer token of every callback of one run.
    Token, "token"
}

secret_text! {
    /// The single-use secret in a host's boot URL.
    BootNonce, "boot nonce"
}
