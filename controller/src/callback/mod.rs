//! The listener agents talk to (contract section 2).
//!
//! A handler authenticates, records a signal bound to the run, and answers; 202 means that the signal is on
//! disk. Handlers never write status, `/boot`'s consume record aside. Refusals are the same bytes whatever
//! their cause; the cause goes to the log, without token, nonce or query.

mod authenticate;
mod bootstrap;
mod events;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
pub(crate) mod logs;
mod record;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use farrier_shared::contract::callback::{ACCEPTED_BODY, MAX_INSPECTION_BODY, UNAUTHORIZED_BODY};
use farrier_shared::contract::paths::{Callback, HEALTH_ROUTE};
use farrier_shared::lifecycle::Timings;

use crate::clock::SharedClock;
use crate::progress::Progress;
use crate::store::Store;

/// Largest log bundle kept, in bytes; more is answered 413.
pub const MAX_LOGS_BODY: usize = 1 << 20;

/// What the handlers share.
#[derive(Clone, Debug)]
pub struct Callbacks {
    /// Hosts, credentials, signals.
    pub store: Store,
    /// Where events go.
    pub progress: Progress,
    /// The time.
    pub clock: SharedClock,
    /// Lifetimes.
    pub timings: Arc<Timings>,
    /// Folder of the agents' log bundles.
    pub logs_dir: PathBuf,
}

/// The agent's routes, and `/healthz`.
pub fn router(callbacks: Callbacks) -> Router {
    Router::new()
        .route(&Callback::Inspection.route(), post(record::inspection))
        .route(&Callback::Provisioned.route(), post(record::provisioned))
        .route(&Callback::ProvisionFailed.route(), post(record::provision_failed))
        .route(&Callback::Bootstrap.route(), get(bootstrap::serve))
        .route(&Callback::Events.route(), post(events::take))
        .route(&Callback::Logs.route(), post(logs::take))
        .route(HEALTH_ROUTE, get(|| async { "ok" }))
        .fallback(|| async { not_found() })
        .layer(DefaultBodyLimit::max(MAX_INSPECTION_BODY))
        .with_state(callbacks)
}

fn json(status: StatusCode, body: &'static str) -> Response {
    (status, [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))], body).into_response()
}

fn text(status: StatusCode, body: &'static str) -> Response {
    (status, [(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"))], body)
        .into_response()
}

/// The one 202.
pub(crate) fn accepted() -> Response {
    json(StatusCode::ACCEPTED, ACCEPTED_BODY)
}

/// The one 401.
pub(crate) fn unauthorized() -> Response {
    json(StatusCode::UNAUTHORIZED, UNAUTHORIZED_BODY)
}

/// The one 404.
pub(crate) fn not_found() -> Response {
    text(StatusCode::NOT_FOUND, "not found")
}

/// The one 500: the cause is in the log.
pub(crate) fn internal_error() -> Response {
    text(StatusCode::INTERNAL_SERVER_ERROR, "internal error")
}

/// Body over the limit.
pub(crate) fn too_large() -> Response {
    text(StatusCode::PAYLOAD_TOO_LARGE, "request body too large")
}

/// Body that does not come.
pub(crate) fn too_slow() -> Response {
    text(StatusCode::REQUEST_TIMEOUT, "request body too slow")
}

/// Body that is not what it should be.
pub(crate) fn invalid_json() -> Response {
    text(StatusCode::BAD_REQUEST, "Invalid JSON")
}
