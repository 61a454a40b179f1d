//! Who may call: the bearer of the current token of the host named in the path.

use std::convert::Infallible;
use std::net::SocketAddr;

use axum::extract::FromRequestParts;
use axum::extract::rejection::PathRejection;
use axum::http::request::Parts;
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

/// The host a path names, if any: what cannot be a host's name is refused like a host that is not there, and not
/// with an answer of its own.
#[derive(Clone, Debug)]
pub(super) struct HostPath(Option<HostKey>);

impl<S: Send + Sync> FromRequestParts<S> for HostPath {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Infallible> {
        let path: Result<axum::extract::Path<(String, String)>, PathRejection> =
            axum::extract::Path::from_request_parts(parts, state).await;
        let key =
            path.ok().and_then(|path| Some(HostKey::new(path.0.0.parse().ok()?, path.0.1.parse().ok()?)));
        Ok(Self(key))
    }
}

impl Callbacks {
    /// Lets a call in, or logs why not.
    pub(super) async fn authenticate(
        &self,
        path: &HostPath,
        headers: &HeaderMap,
        remote: SocketAddr,
    ) -> Option<Caller> {
        match self.check(path, headers).await {
            Ok(caller) => Some(caller),
            Err(reason) => {
                // The path is foreign text: only what parses as a host is repeated.
                match &path.0 {
                    Some(host) => tracing::info!(%host, %remote, %reason, "callback refused"),
                    None => tracing::info!(%remote, %reason, "callback refused"),
                }
                None
            }
        }
    }

    async fn check(&self, path: &HostPath, headers: &HeaderMap) -> Result<Caller, Denied> {
        let key = path.0.as_ref().ok_or(Denied::Path)?;
        let header =
            headers.get(header::AUTHORIZATION).and_then(|v| v.to_str().ok()).ok_or(Denied::NoBearer)?;
        let presented = credentials::bearer(header).ok_or(Denied::NoBearer)?;
        self.bearer_of(key, presented).await
    }

    /// Reads host and credentials anew just before acting on them: a token replaced meanwhile must not sign.
    pub(super) async fn verify_again(&self, caller: &Caller) -> Result<Caller, Denied> {
        self.bearer_of(&caller.host.metadata.key(), caller.credentials.token.expose()).await
    }

    async fn bearer_of(&self, key: &HostKey, presented: &str) -> Result<Caller, Denied> {
        let host: PhysicalHost = self.store.get(key).await?.ok_or(Denied::NoHost)?;
        let read = self.store.credentials(key).await?;
        let read = read.as_ref().map_or(CredentialsRead::Absent, |v| CredentialsRead::Present(&v.value));
        let credentials = read.verify_bearer(&host, presented, self.clock.now())?.clone();
        Ok(Caller { host, credentials })
    }
}
