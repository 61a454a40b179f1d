//! `GET /boot`: one host's script, once.

use std::net::{IpAddr, SocketAddr};

use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{ConnectInfo, Path, Query, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use farrier_shared::contract::{HostKey, MacAddress};
use farrier_shared::lifecycle::boot::{BootDecision, CONSUME_ATTEMPTS, decide_boot};
use farrier_shared::lifecycle::credentials::{Credentials, CredentialsRead};
use farrier_shared::lifecycle::host_view;
use farrier_shared::resource::{Beskar7Machine, PhysicalHost};
use serde::Deserialize;

use super::{Boot, Firmware};
use crate::callback::not_found;
use crate::store::StoreError;

/// What firmware says of itself; anything else in the query is ignored.
#[derive(Debug, Default, Deserialize)]
pub(super) struct FirmwareQuery {
    /// Address of the interface it boots from; left out of the script when it is not one.
    pub(super) mac: Option<String>,
    /// iPXE's `${platform}`: `efi` or `pcbios`.
    pub(super) platform: Option<String>,
}

impl FirmwareQuery {
    pub(super) fn is_efi(&self) -> bool {
        self.platform.as_deref() == Some("efi")
    }

    fn firmware(&self) -> Firmware {
        let mac = self.mac.as_deref().and_then(|mac| mac.parse::<MacAddress>().ok());
        Firmware { mac, efi: self.is_efi() }
    }
}

/// An iPXE script as an answer.
pub(super) fn ipxe(script: String) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    (headers, script).into_response()
}

/// The one 429.
pub(super) fn too_many() -> Response {
    let headers = [(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"))];
    (StatusCode::TOO_MANY_REQUESTS, headers, "too many requests").into_response()
}

/// Serves the script, or the one 404 whatever the cause.
pub(super) async fn serve(
    State(boot): State<Boot>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    path: Result<Path<(String, String, String)>, PathRejection>,
    query: Result<Query<FirmwareQuery>, QueryRejection>,
    headers: HeaderMap,
) -> Response {
    let client = boot.proxies.client(peer, &headers);
    if !boot.rate.admit(client, boot.clock.monotonic()) {
        tracing::info!(%client, "boot script refused: too many requests");
        return too_many();
    }
    let query = query.map(|Query(query)| query).unwrap_or_default();
    let Ok(Path((namespace, name, nonce))) = path else { return not_found() };
    let (Ok(namespace), Ok(name)) = (namespace.parse(), name.parse()) else { return not_found() };
    let host = HostKey::new(namespace, name);
    match boot.script(&host, &nonce, client, &query).await {
        Ok(script) => {
            tracing::info!(%host, %client, "boot script served");
            ipxe(script)
        }
        Err(reason) => {
            tracing::info!(%host, %client, %reason, "boot script refused");
            not_found()
        }
    }
}

impl Boot {
    /// The script, its nonce consumed and the record of it durable; or the reason for the log.
    async fn script(
        &self,
        key: &HostKey,
        nonce: &str,
        client: IpAddr,
        query: &FirmwareQuery,
    ) -> Result<String, String> {
        let text = |e: StoreError| e.to_string();
        for _ in 0..CONSUME_ATTEMPTS {
            let host: PhysicalHost = self.store.get(key).await.map_err(text)?.ok_or("no such host")?;
            let read = self.store.credentials(key).await.map_err(text)?;
            let read = read.as_ref().map_or(CredentialsRead::Absent, |v| CredentialsRead::Present(&v.value));
            match decide_boot(&host, read, nonce, client, self.clock.now(), &self.timings) {
                BootDecision::Refuse(reason) => return Err(reason.to_string()),
                BootDecision::Again { credentials } => return self.render(&host, credentials, query).await,
                BootDecision::Consume { bootstrap, credentials } => {
                    // Rendered first: a script that cannot be rendered must not use up the nonce.
                    let script = self.render(&host, credentials, query).await?;
                    let mut consumed = host.clone();
                    consumed.status.bootstrap = Some(*bootstrap);
                    match self.store.update(&consumed).await {
                        Ok(_) => return Ok(script),
                        Err(StoreError::Conflict { .. }) => {}
                        Err(error) => return Err(error.to_string()),
                    }
                }
            }
        }
        Err("the host kept changing while its nonce was being consumed".to_owned())
    }

    /// Depends on stored objects alone, so that the same request gets the same bytes.
    async fn render(
        &self,
        host: &PhysicalHost,
        credentials: &Credentials,
        query: &FirmwareQuery,
    ) -> Result<String, String> {
        let consumer = host_view::consumer_key(host).ok_or("the claim does not resolve")?;
        let machine: Option<Beskar7Machine> = self.store.get(&consumer).await.map_err(|e| e.to_string())?;
        let machine = machine.ok_or("the machine that has claimed the host does not exist")?;
        self.scripts.script(host, &machine, credentials, query.firmware()).map_err(|e| e.to_string())
    }
}
