//! The MAC that binds a signal to the run that sent it (contract: signal bindings, `beskar7-callback-binding-v1`).
//!
//! A signal without a valid binding does nothing: whoever can write signals but holds no token of the
//! current run cannot move a host.

use std::fmt;

use hmac::{Hmac, KeyInit as _, Mac as _};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use subtle::ConstantTimeEq as _;

use super::name::HostKey;
use super::secret::{BootNonce, Token};

/// Lower-case hex HMAC-SHA256, 64 characters.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Binding(String);

/// What a binding covers, apart from the key it is made with.
#[derive(Debug, Clone, Copy)]
pub struct Bound<'a> {
    /// Full annotation key of the signal, prefix included.
    pub key: &'a str,
    /// The host.
    pub host: &'a HostKey,
    /// UID of the host object.
    pub host_uid: &'a str,
    /// UID of the machine the credentials were minted for; empty for records older than that field.
    pub consumer_uid: &'a str,
    /// Lower-case hex SHA-256 of the report text for `inspection-result-ref`; empty for every other signal.
    pub digest: &'a str,
    /// Value of the signal: the only free-form field, hence last.
    pub value: &'a str,
}

impl Binding {
    /// Signs `bound` with the run's token and nonce.
    pub fn sign(token: &Token, nonce: &BootNonce, bound: &Bound<'_>) -> Self {
        let nonce_hash = nonce.sha256_hex();
        let fields = [
            "beskar7-callback-binding-v1",
            bound.key,
            bound.host.namespace.as_str(),
            bound.host.name.as_str(),
            bound.host_uid,
            bound.consumer_uid,
            &nonce_hash,
            bound.digest,
            bound.value,
        ];
        let mut mac = Hmac::<Sha256>::new_from_slice(token.expose().as_bytes())
            .unwrap_or_else(|_| unreachable!("HMAC takes keys of any length"));
        for (index, field) in fields.iter().enumerate() {
            if index > 0 {
                mac.update(&[0]);
            }
            mac.update(field.as_bytes());
        }
        Self(hex::encode(mac.finalize().into_bytes()))
    }

    /// A binding read back from a store; any text, since verification decides.
    pub fn from_stored(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Whether this is the binding of `bound` under the given credentials, in constant time.
    pub fn verify(&self, token: &Token, nonce: &BootNonce, bound: &Bound<'_>) -> bool {
        Self::sign(token, nonce, bound).0.as_bytes().ct_eq(self.0.as_bytes()).into()
    }

    /// The text, for storing.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Binding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Binding(redacted)")
    }
}
