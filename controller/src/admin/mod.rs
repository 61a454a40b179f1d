//! The admin API: what operators and tools write and read, as REST on a unix socket.
//!
//! Whoever may open the socket (mode 0600) may do everything. A loopback TCP listener is optional and asks for
//! the token in a file. Input is strict: an unknown field, a malformed digest or URL is an error that names the
//! field, and nothing is stored.

mod adopt;
mod error;
mod given;
mod kind;
mod listeners;
mod listing;
mod objects;
mod release;
#[cfg(test)]
mod tests;
mod view;
mod watch;

use std::sync::Arc;

use axum::extract::{DefaultBodyLimit, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use axum::{Extension, Json, Router};
use farrier_shared::contract::paths::HEALTH_ROUTE;
use serde::{Deserialize, Serialize};

pub use error::{ApiError, ErrorBody, Problem};
pub use kind::Kind;
pub use listeners::{AdminError, bind_unix, require_token, token_file};
pub use view::{HostLine, SecretView};

use crate::boot::Renderer;
use crate::clock::SharedClock;
use crate::progress::Progress;
use crate::store::Store;

/// Largest object accepted, in bytes: a Secret of 1 MiB in base64, and some.
const MAX_OBJECT: usize = 2 << 20;

/// What the handlers share.
#[derive(Clone, Debug)]
pub struct Admin {
    /// All objects.
    pub store: Store,
    /// What agents said last.
    pub progress: Progress,
    /// The time.
    pub clock: SharedClock,
    /// What the controller says of itself.
    pub info: Arc<Info>,
    /// Makes the boot scripts that machines are booted with.
    pub scripts: Arc<Renderer>,
}

/// What a client needs to know of the controller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Info {
    /// Version of the controller.
    pub version: String,
    /// Base URL agents call.
    pub url_base: String,
    /// Base URL of the images.
    pub http_url_base: String,
    /// Where the inspection image is.
    pub inspection_image_url: String,
}

/// The whole API.
pub fn router(admin: Admin) -> Router {
    let one = get(objects::get_one).put(objects::apply).delete(objects::delete);
    Router::new()
        .route("/apis/v1/namespaces/{ns}/{kind}", get(objects::list).post(objects::create))
        .route("/apis/v1/namespaces/{ns}/{kind}/{name}", one)
        .route("/apis/v1/namespaces/{ns}/{kind}/{name}/history", get(objects::history))
        .route("/apis/v1/namespaces/{ns}/{kind}/{name}/progress", get(objects::progress))
        .route("/apis/v1/namespaces/{ns}/{kind}/{name}/adopt", post(adopt::adopt))
        .route("/apis/v1/{kind}", get(objects::list_everywhere))
        .route("/apis/v1/watch", get(watch::serve).layer(Extension(watch::slots())))
        .route("/apis/v1/info", get(info))
        .route(HEALTH_ROUTE, get(|| async { "ok" }))
        .fallback(|| async { ApiError::not_found("no such path; see the admin API's documentation") })
        .layer(DefaultBodyLimit::max(MAX_OBJECT))
        .layer(axum::middleware::map_response(explained))
        .with_state(admin)
}

/// Gives refusals of the web framework, which are plain text or nothing, the form of every other error.
async fn explained(response: Response) -> Response {
    let (status, headers) = (response.status(), response.headers());
    if !status.is_client_error()
        || headers.get(header::CONTENT_TYPE).is_some_and(|kind| kind == "application/json")
    {
        return response;
    }
    let allow = headers.get(header::ALLOW).cloned();
    let said = axum::body::to_bytes(response.into_body(), 4096).await.unwrap_or_default();
    let problem = match status {
        StatusCode::PAYLOAD_TOO_LARGE => format!("the object is larger than {MAX_OBJECT} bytes"),
        StatusCode::METHOD_NOT_ALLOWED => "this path does not take this method".to_owned(),
        _ => String::from_utf8_lossy(&said).into_owned(),
    };
    let mut told =
        ApiError::new(status, "", problem, "correct the request; nothing was stored").into_response();
    if let Some(allow) = allow {
        told.headers_mut().insert(header::ALLOW, allow);
    }
    told
}

async fn info(State(admin): State<Admin>) -> Json<Info> {
    Json(Info::clone(&admin.info))
}
