//! Reports that move a host: each becomes one signal, bound to the run and durable before the answer.

use std::net::SocketAddr;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{ConnectInfo, State};
use axum::http::HeaderMap;
use axum::response::Response;
use farrier_shared::contract::binding::{Binding, Bound};
use farrier_shared::contract::callback::{
    MAX_INSPECTION_BODY, MAX_SMALL_BODY, ProvisionFailed, sanitise_reason,
};
use farrier_shared::contract::report::InspectionReport;
use farrier_shared::lifecycle::callback::{self as rules, Reception};
use farrier_shared::lifecycle::signal::{Signal, SignalKey};
use farrier_shared::resource::PhysicalHost;
use http_body_util::{BodyExt as _, Limited};
use sha2::{Digest as _, Sha256};

use super::authenticate::{Caller, Denied, HostPath};
use super::{Callbacks, accepted, internal_error, invalid_json, too_large, too_slow, unauthorized};

/// The longest a body may take, however it trickles in: the contract's read timeout.
const BODY_TIME: Duration = Duration::from_secs(15);

/// `POST /inspection`: the report is kept with its signal until the reconciler takes it.
pub(super) async fn inspection(
    State(callbacks): State<Callbacks>,
    ConnectInfo(remote): ConnectInfo<SocketAddr>,
    path: HostPath,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let (caller, body) = match callbacks.admit(&path, &headers, remote, body, MAX_INSPECTION_BODY).await {
        Ok(admitted) => admitted,
        Err(refusal) => return *refusal,
    };
    let Ok(mut report) = InspectionReport::from_json(&body) else { return invalid_json() };
    report.timestamp = Some(callbacks.clock.now());
    let Ok(report) = serde_json::to_string(&report) else { return internal_error() };
    let value = format!("{}-inspection-result", caller.host.metadata.name);
    callbacks.settle(caller, SignalKey::InspectionResult, rules::inspection, value, Some(report)).await
}

/// `POST /provisioned`: the body is advisory and not looked at.
pub(super) async fn provisioned(
    State(callbacks): State<Callbacks>,
    ConnectInfo(remote): ConnectInfo<SocketAddr>,
    path: HostPath,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let Some(caller) = callbacks.authenticate(&path, &headers, remote).await else { return unauthorized() };
    // Read so that the connection can be used again; whatever it says, it is no error.
    let _ = read_at_most(body, MAX_SMALL_BODY).await;
    let value = "provisioned".to_owned();
    callbacks.settle(caller, SignalKey::Provisioned, rules::provisioned, value, None).await
}

/// `POST /provision-failed`: a body that cannot be understood still is a failure.
pub(super) async fn provision_failed(
    State(callbacks): State<Callbacks>,
    ConnectInfo(remote): ConnectInfo<SocketAddr>,
    path: HostPath,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let Some(caller) = callbacks.authenticate(&path, &headers, remote).await else { return unauthorized() };
    let body = read_at_most(body, MAX_SMALL_BODY).await.unwrap_or_default();
    let told: ProvisionFailed = serde_json::from_slice(&body).unwrap_or_default();
    let value = sanitise_reason(&told.reason);
    callbacks.settle(caller, SignalKey::ProvisionFailed, rules::provision_failed, value, None).await
}

/// Why a body was not read to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    /// It is longer than allowed, or broke off.
    TooLong,
    /// It did not come within [`BODY_TIME`].
    TooSlow,
}

impl Cut {
    pub(super) fn answer(self) -> Response {
        match self {
            Self::TooLong => too_large(),
            Self::TooSlow => too_slow(),
        }
    }
}

/// The whole body, at most `limit` bytes of it.
async fn read_at_most(body: Body, limit: usize) -> Result<Bytes, Cut> {
    match tokio::time::timeout(BODY_TIME, Limited::new(body, limit).collect()).await {
        Ok(Ok(whole)) => Ok(whole.to_bytes()),
        Ok(Err(_)) => Err(Cut::TooLong),
        Err(_) => Err(Cut::TooSlow),
    }
}

impl Callbacks {
    /// The caller and the whole body, for the handlers that need both; nobody's body is read before they are
    /// known.
    ///
    /// # Errors
    /// The answer to give instead.
    pub(super) async fn admit(
        &self,
        path: &HostPath,
        headers: &HeaderMap,
        remote: SocketAddr,
        body: Body,
        limit: usize,
    ) -> Result<(Caller, Bytes), Box<Response>> {
        let Some(caller) = self.authenticate(path, headers, remote).await else {
            return Err(Box::new(unauthorized()));
        };
        match read_at_most(body, limit).await {
            Ok(body) => Ok((caller, body)),
            Err(cut) => Err(Box::new(cut.answer())),
        }
    }

    /// Verifies once more, then records, clears or ignores as the host's state says.
    async fn settle(
        &self,
        caller: Caller,
        key: SignalKey,
        rule: fn(&PhysicalHost, bool) -> Reception,
        value: String,
        report: Option<String>,
    ) -> Response {
        let host = caller.host.metadata.key();
        match self.try_settle(&caller, key, rule, value, report).await {
            Ok(reception) => {
                let state = caller.host.status.state;
                tracing::info!(%host, signal = key.annotation(), ?reception, %state, "callback accepted");
                accepted()
            }
            Err(reason) => {
                tracing::error!(%host, signal = key.annotation(), %reason, "callback could not be recorded");
                internal_error()
            }
        }
    }

    async fn try_settle(
        &self,
        caller: &Caller,
        key: SignalKey,
        rule: fn(&PhysicalHost, bool) -> Reception,
        value: String,
        report: Option<String>,
    ) -> Result<Reception, Denied> {
        let host_key = caller.host.metadata.key();
        // Before the host: a report is removed only once it is in the host's status.
        let waiting = self.store.signals(&host_key).await?;
        let report_waits = waiting.iter().any(|s| s.key == SignalKey::InspectionResult);
        let Caller { host, credentials } = self.verify_again(caller).await?;
        let reception = rule(&host, report_waits);
        match reception {
            Reception::Record => {
                let digest = report.as_deref().map(|r| hex::encode(Sha256::digest(r))).unwrap_or_default();
                let bound = Bound {
                    key: key.annotation(),
                    host: &host_key,
                    host_uid: &host.metadata.uid,
                    consumer_uid: &credentials.consumer_uid,
                    digest: &digest,
                    value: &value,
                };
                let binding = Some(Binding::sign(&credentials.token, &credentials.nonce, &bound));
                self.store.put_signal(&host_key, &Signal { key, value, binding, report }).await?;
            }
            Reception::Clear => {
                for waiting in self.store.signals(&host_key).await?.iter().filter(|s| s.key == key) {
                    self.store.remove_signal(&host_key, waiting).await?;
                }
            }
            Reception::Ignore => {}
        }
        Ok(reception)
    }
}
