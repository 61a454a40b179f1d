//! The per-run credentials record: what the reference keeps in the Secret `<host>-bootstrap-token`.

use serde::{Deserialize, Serialize};

use crate::contract::secret::{BootNonce, Token};
use crate::contract::time::Time;

/// Credentials of one run. The store keeps them with a version for compare-and-swap.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Credentials {
    /// UID of the host object they belong to; another host's credentials are never adopted.
    pub host_uid: String,
    /// Name of the machine they were minted for.
    pub consumer: String,
    /// UID of that machine; empty in records older than the field.
    #[serde(default)]
    pub consumer_uid: String,
    /// Id of the run they were minted for; Farrier's own.
    pub run: String,
    /// Bearer token.
    pub token: Token,
    /// When the token was minted.
    pub token_issued_at: Time,
    /// When the token ends.
    pub token_expires_at: Time,
    /// Boot nonce.
    pub nonce: BootNonce,
    /// When the nonce ends.
    pub nonce_expires_at: Time,
}
