//! `POST /events`: what the agent is doing. Shown and timed by, never a command.

use std::net::SocketAddr;

use axum::body::Body;
use axum::extract::{ConnectInfo, State};
use axum::http::HeaderMap;
use axum::response::Response;
use farrier_shared::contract::callback::{Event, MAX_SMALL_BODY, printable};
use farrier_shared::lifecycle::Credentials;

use super::authenticate::HostPath;
use super::{Callbacks, accepted, invalid_json};
use crate::progress::ProgressEntry;

/// Longest text of an event kept, in characters.
const MAX_TEXT: usize = 256;

/// Takes an event of the present run; one of another run is accepted and dropped.
pub(super) async fn take(
    State(callbacks): State<Callbacks>,
    ConnectInfo(remote): ConnectInfo<SocketAddr>,
    path: HostPath,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let (caller, body) = match callbacks.admit(&path, &headers, remote, body, MAX_SMALL_BODY).await {
        Ok(admitted) => admitted,
        Err(refusal) => return *refusal,
    };
    let Ok(event) = serde_json::from_slice::<Event>(&body) else { return invalid_json() };
    let host = caller.host.metadata.key();
    if let Some(event) = of_this_run(event, &caller.credentials) {
        tracing::debug!(%host, event = ?event.event, step = event.step, bytes = event.bytes, "event");
        callbacks.progress.record(&host, ProgressEntry { event, at: callbacks.clock.now() });
    } else {
        tracing::info!(%host, "event of another run dropped");
    }
    accepted()
}

/// The event with its texts made printable and short, unless it names another run.
pub(super) fn of_this_run(mut event: Event, credentials: &Credentials) -> Option<Event> {
    let run = event.run.get_or_insert_with(|| credentials.run.clone());
    if *run != credentials.run {
        return None;
    }
    event.message = short(&event.message);
    event.step = event.step.as_deref().map(short);
    Some(event)
}

/// Text fit for a terminal, and not too long.
fn short(text: &str) -> String {
    printable(text).chars().take(MAX_TEXT).collect()
}
