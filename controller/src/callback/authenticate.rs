//! Who may call: the bearer of the current token of the host named in the path.

use std::net::SocketAddr;

use axum::http::{HeaderMap, header};
use farrier_shared::contract::HostKey;
use farrier_shared::lifecycle::credentials::{self, Credentials, CredentialsRead, Refused};
use farrier_shared::resource::PhysicalHost;

use super::Callbacks;

/// An authenticated call.
#[derive(Debug)]
pub(super) struct Caller {
    /// The host, as read when the call was authenticated.
    pub(super) host: PhysicalHost,
    /// The credentials presented, as read then.
    pub(super) credentials: Credentials,
}

/// Why a call is refused; all are answered alike.
#[derive(Debug, thiserror::Error)]
pub(super) enum Denied {
    #[error("the path names no possible host")]
    Path,
    #[error("no bearer token in the Authorization header")]
    NoBearer,
    #[error("no such host")]
    NoHost,
    #[error(transparent)]
    Refused(#[from] Refused),
    #[error("{0}")]
    Store(#[from] crate::store::StoreError),
}

/// The host a path names.
pub(super) fn host_key((namespace, name): &(String, String)) -> Option<HostKey> {
    Some(HostKey::new(namespace.parse().ok()?, name.parse().ok()?))
}

impl Callbacks {
    /// Lets a call in, or logs why not.
    pub(super) async fn authenticate(
        &self,
        path: &(String, String),
        headers: &HeaderMap,
        remote: SocketAddr,
    ) -> Option<Caller> {
        match self.check(path, headers).await {
            Ok(caller) => Some(caller),
            Err(reason) => {
                // The path is foreign text: only what parses as a host is repeated.
                match host_key(path) {
                    Some(host) => tracing::info!(%host, %remote, %reason, "callback refused"),
                    None => tracing::info!(%remote, %reason, "callback refused"),
                }
                None
            }
        }
    }

    async fn check(&self, path: &(String, String), headers: &HeaderMap) -> Result<Caller, Denied> {
        let key = host_key(path).ok_or(Denied::Path)?;
        let header =
            headers.get(header::AUTHORIZATION).and_then(|v| v.to_str().ok()).ok_or(Denied::NoBearer)?;
        let presented = credentials::bearer(header).ok_or(Denied::NoBearer)?;
        let host: PhysicalHost = self.store.get(&key).await?.ok_or(Denied::NoHost)?;
        let read = self.store.credentials(&key).await?;
        let read = read.as_ref().map_or(CredentialsRead::Absent, |v| CredentialsRead::Present(&v.value));
        let credentials = read.verify_bearer(&host, presented, self.clock.now())?.clone();
        Ok(Caller { host, credentials })
    }

    /// Reads host and credentials anew just before acting on them: a token replaced meanwhile must not sign.
    pub(super) async fn verify_again(&self, caller: &Caller) -> Result<Caller, Denied> {
        let key = caller.host.metadata.key();
        let host: PhysicalHost = self.store.get(&key).await?.ok_or(Denied::NoHost)?;
        let read = self.store.credentials(&key).await?;
        let read = read.as_ref().map_or(CredentialsRead::Absent, |v| CredentialsRead::Present(&v.value));
        let token = caller.credentials.token.expose();
        let credentials = read.verify_bearer(&host, token, self.clock.now())?.clone();
        Ok(Caller { host, credentials })
    }
}
