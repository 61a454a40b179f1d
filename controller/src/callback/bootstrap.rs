//! `GET /bootstrap`: the user-data of the machine that has claimed the host.

use std::net::SocketAddr;

use axum::extract::{ConnectInfo, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use farrier_shared::contract::HostKey;
use farrier_shared::contract::callback::MAX_BOOTSTRAP_BODY;
use farrier_shared::lifecycle::callback::{self as rules, NoUserData};
use farrier_shared::lifecycle::host_view;
use farrier_shared::resource::secret::{SecretBytes, USER_DATA_KEY};
use farrier_shared::resource::{Beskar7Machine, PhysicalHost, Secret};

use super::authenticate::{Caller, Denied, HostPath};
use super::{Callbacks, internal_error, not_found, unauthorized};

/// Which step found nothing; all are answered alike.
#[derive(Debug, thiserror::Error)]
enum Unresolved {
    #[error("the claim does not resolve")]
    Claim,
    #[error("the machine does not exist")]
    Machine,
    #[error(transparent)]
    NotDue(#[from] NoUserData),
    #[error("the machine names no user-data Secret")]
    SecretName,
    #[error("the user-data Secret does not exist")]
    Secret,
    #[error("the user-data Secret has no value")]
    Value,
    #[error("{0}")]
    Store(#[from] crate::store::StoreError),
    #[error("{0}")]
    Denied(#[from] Denied),
}

/// Serves the bytes as they are in the Secret.
pub(super) async fn serve(
    State(callbacks): State<Callbacks>,
    ConnectInfo(remote): ConnectInfo<SocketAddr>,
    path: HostPath,
    headers: HeaderMap,
) -> Response {
    let Some(caller) = callbacks.authenticate(&path, &headers, remote).await else { return unauthorized() };
    let host = caller.host.metadata.key();
    match callbacks.resolve(&caller).await {
        Ok(value) if value.expose().len() > MAX_BOOTSTRAP_BODY => {
            tracing::error!(%host, bytes = value.expose().len(), "user-data is larger than {MAX_BOOTSTRAP_BODY} bytes");
            internal_error()
        }
        Ok(value) => {
            tracing::info!(%host, bytes = value.expose().len(), "user-data served");
            let fixed = |name, value| (name, HeaderValue::from_static(value));
            let headers = [
                fixed(header::CONTENT_TYPE, "application/octet-stream"),
                fixed(header::CACHE_CONTROL, "no-store"),
                fixed(header::PRAGMA, "no-cache"),
            ];
            (headers, value.expose().to_vec()).into_response()
        }
        Err(reason) => {
            tracing::info!(%host, %reason, "user-data not served");
            not_found()
        }
    }
}

impl Callbacks {
    async fn resolve(&self, caller: &Caller) -> Result<SecretBytes, Unresolved> {
        // Agents ask until it is due: what comes too soon costs no second look at the credentials.
        self.user_data(&caller.host).await?;
        // What is served belongs to whoever holds the claim now.
        let fresh = self.verify_again(caller).await?;
        self.user_data(&fresh.host).await
    }

    async fn user_data(&self, host: &PhysicalHost) -> Result<SecretBytes, Unresolved> {
        let key = host_view::consumer_key(host).ok_or(Unresolved::Claim)?;
        let machine: Beskar7Machine = self.store.get(&key).await?.ok_or(Unresolved::Machine)?;
        rules::user_data(host, &machine)?;
        let name = machine.spec.bootstrap.ok_or(Unresolved::SecretName)?.data_secret_name;
        let key = HostKey::new(machine.metadata.namespace, name);
        let mut secret: Secret = self.store.get(&key).await?.ok_or(Unresolved::Secret)?;
        secret.data.remove(USER_DATA_KEY).filter(|v| !v.expose().is_empty()).ok_or(Unresolved::Value)
    }
}
