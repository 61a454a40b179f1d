//! The per-run credentials record: what the reference keeps in the Secret `<host>-bootstrap-token`.

use serde::{Deserialize, Serialize};

use super::host_view;
use super::timing::Timings;
use crate::contract::secret::{BootNonce, Token};
use crate::contract::time::Time;
use crate::resource::PhysicalHost;
use crate::resource::host::BootstrapStatus;

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

/// What reading a host's credentials gave. A store that cannot be read is not a store that holds none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CredentialsRead<'a> {
    /// There are none.
    #[default]
    Absent,
    /// The store did not answer.
    Unreadable,
    /// These.
    Present(&'a Credentials),
}

/// Why credentials may not be used. Told to the operator's log, never to the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Nobody has claimed the host, or the claim does not resolve.
    #[error("the host is not claimed")]
    Unclaimed,
    /// There are no credentials.
    #[error("the host has no credentials")]
    Absent,
    /// The store did not answer.
    #[error("the credentials cannot be read")]
    Unreadable,
    /// They belong to another host.
    #[error("the credentials belong to another host object")]
    Foreign,
    /// They were minted for another machine.
    #[error("the credentials were minted for another machine")]
    OtherConsumer,
    /// They have ended.
    #[error("the credential has expired")]
    Expired,
    /// What was presented is something else.
    #[error("the presented credential does not match")]
    Mismatch,
}

impl<'a> CredentialsRead<'a> {
    /// The credentials, when they belong to this very host object.
    ///
    /// # Errors
    /// Why not.
    pub fn owned_by(self, host: &PhysicalHost) -> Result<&'a Credentials, Refused> {
        match self {
            Self::Absent => Err(Refused::Absent),
            Self::Unreadable => Err(Refused::Unreadable),
            Self::Present(c) if c.host_uid.is_empty() || c.host_uid != host.metadata.uid => {
                Err(Refused::Foreign)
            }
            Self::Present(c) => Ok(c),
        }
    }

    /// The credentials, when they belong to this host and to the machine that has claimed it.
    ///
    /// The machine is compared by name, so that a claim survives a move between clusters.
    ///
    /// # Errors
    /// Why not.
    pub fn bound(self, host: &PhysicalHost) -> Result<&'a Credentials, Refused> {
        let consumer = host_view::consumer(host).ok_or(Refused::Unclaimed)?;
        let credentials = self.owned_by(host)?;
        if credentials.consumer == consumer.as_str() { Ok(credentials) } else { Err(Refused::OtherConsumer) }
    }

    /// The credentials, when `presented` is their token and it has not ended.
    ///
    /// # Errors
    /// Why not; every cause must be answered alike.
    pub fn verify_bearer(
        self,
        host: &PhysicalHost,
        presented: &str,
        now: Time,
    ) -> Result<&'a Credentials, Refused> {
        let credentials = self.bound(host)?;
        if now >= credentials.token_expires_at {
            return Err(Refused::Expired);
        }
        if credentials.token.matches(presented) { Ok(credentials) } else { Err(Refused::Mismatch) }
    }

    /// The credentials, when `presented` is their boot nonce and it has not ended.
    ///
    /// # Errors
    /// Why not; every cause must be answered alike.
    pub fn verify_nonce(
        self,
        host: &PhysicalHost,
        presented: &str,
        now: Time,
    ) -> Result<&'a Credentials, Refused> {
        let credentials = self.bound(host)?;
        if now >= credentials.nonce_expires_at {
            return Err(Refused::Expired);
        }
        if credentials.nonce.matches(presented) { Ok(credentials) } else { Err(Refused::Mismatch) }
    }
}

/// The value of an `Authorization` header as a bearer token: the scheme in any case, the token trimmed, never
/// empty, without inner white space.
pub fn bearer(header: &str) -> Option<&str> {
    let (scheme, token) = header.trim().split_once(' ')?;
    let token = token.trim();
    let whole = !token.is_empty() && !token.contains(char::is_whitespace);
    (scheme.eq_ignore_ascii_case("bearer") && whole).then_some(token)
}

impl Credentials {
    /// These credentials with the token ending `grace` from now, or nothing when it ends sooner anyway.
    ///
    /// A token is never lengthened by this.
    pub fn cut(&self, now: Time, timings: &Timings) -> Option<Self> {
        let end = now + timings.token_grace;
        (self.token_expires_at > end).then(|| Self { token_expires_at: end, ..self.clone() })
    }

    /// These credentials with a longer token, or nothing when enough of it is left.
    ///
    /// For a deployment that makes progress beyond the token's plain lifetime: without this its success could
    /// not be told. Never beyond `limit`, and an ended token is not revived.
    pub fn renewed(&self, now: Time, limit: Time, timings: &Timings) -> Option<Self> {
        let left = self.token_expires_at.since(now);
        let end = limit.min(now + timings.token_renew_below * 2);
        let due = !left.is_zero() && left < timings.token_renew_below && end > self.token_expires_at;
        due.then(|| Self { token_expires_at: end, ..self.clone() })
    }
}

/// Copies hashes and times into status, for people to see; nothing is ever verified against them.
///
/// The consume record and the URL stay. Credentials without a consumer are not shown; none clear the mirror.
pub fn mirror(status: &mut Option<BootstrapStatus>, credentials: CredentialsRead<'_>, host: &PhysicalHost) {
    let shown = match credentials.owned_by(host) {
        Err(Refused::Unreadable) => return,
        Ok(c) if !c.consumer.is_empty() => Some(c),
        Ok(_) | Err(_) => None,
    };
    if shown.is_none() && status.is_none() {
        return;
    }
    let bootstrap = status.get_or_insert_default();
    bootstrap.token_hash = shown.map(|c| c.token.sha256_hex()).unwrap_or_default();
    bootstrap.issued_at = shown.map(|c| c.token_issued_at);
    bootstrap.expires_at = shown.map(|c| c.token_expires_at);
    bootstrap.boot_nonce_hash = shown.map(|c| c.nonce.sha256_hex()).unwrap_or_default();
    bootstrap.boot_nonce_expires_at = shown.map(|c| c.nonce_expires_at);
    if *bootstrap == BootstrapStatus::default() {
        *status = None;
    }
}
