//! Plain HTTP for what is verified by digest anyway: the inspection image and OS images of small installations.
//!
//! Files below one folder, by name; with byte ranges, so that an agent can go on where a connection broke.

#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod open;
mod range;
mod room;
#[cfg(test)]
mod tests;

use std::io::SeekFrom;
use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use farrier_shared::contract::paths::HEALTH_ROUTE;
use tokio::io::{AsyncReadExt as _, AsyncSeekExt as _};
use tokio_util::io::ReaderStream;

use crate::callback::not_found;
use range::Part;
use room::{Full, Placed, Room};

/// Bytes read from disk at a time; with the socket's buffer, all the memory a download takes.
const CHUNK: usize = 256 << 10;

/// Seconds until a client that found no room may ask again. Eight tries, as the agent makes, end before a run is given
/// up as standing still.
const AGAIN: u64 = 30;

/// What is served.
#[derive(Clone, Debug)]
struct Images {
    dir: Arc<PathBuf>,
    room: Room,
}

/// `GET` and `HEAD /images/…` from `dir`, and `/healthz`.
pub fn router(dir: PathBuf) -> Router {
    with_room(dir, Room::default())
}

fn with_room(dir: PathBuf, room: Room) -> Router {
    Router::new()
        .route("/images/{*path}", get(serve))
        .route(HEALTH_ROUTE, get(|| async { "ok" }))
        .fallback(|| async { not_found() })
        .with_state(Images { dir: Arc::new(dir), room })
}

async fn serve(
    State(Images { dir, room }): State<Images>,
    method: Method,
    path: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
) -> Response {
    let Ok(Path(path)) = path else { return not_found() };
    let opened = tokio::task::spawn_blocking(move || open::beneath(&dir, &path)).await;
    match opened {
        Ok(Ok(file)) => answer(file, &method, &headers, &room).await.unwrap_or_else(|error| {
            tracing::error!(%error, "an image cannot be read");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }),
        Ok(Err(reason)) => {
            tracing::debug!(%reason, "image not served");
            not_found()
        }
        Err(error) => {
            tracing::error!(%error, "opening an image failed");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

async fn answer(
    file: open::Opened,
    method: &Method,
    headers: &HeaderMap,
    room: &Room,
) -> std::io::Result<Response> {
    let etag = file.etag();
    let given = |name: HeaderName| headers.get(name).and_then(|v| v.to_str().ok());
    if given(header::IF_NONE_MATCH)
        .is_some_and(|tags| tags.split(',').any(|tag| matches!(tag.trim(), "*") || tag.trim() == etag))
    {
        return Ok((StatusCode::NOT_MODIFIED, [(header::ETAG, etag)]).into_response());
    }
    // A range of another version of the file would splice two images; then the whole is the answer.
    let same_version = given(header::IF_RANGE).is_none_or(|tag| tag == etag);
    let wanted = given(header::RANGE).filter(|_| same_version);
    let part = wanted.map_or(Part::Whole, |text| range::parse(text, file.len));
    let (status, first, len, content_range) = match part {
        Part::Whole => (StatusCode::OK, 0, file.len, None),
        Part::Bytes { first, last } => {
            let shown = format!("bytes {first}-{last}/{}", file.len);
            (StatusCode::PARTIAL_CONTENT, first, last - first + 1, Some(shown))
        }
        Part::Unsatisfiable => {
            let shown = format!("bytes */{}", file.len);
            return Ok((StatusCode::RANGE_NOT_SATISFIABLE, [(header::CONTENT_RANGE, shown)]).into_response());
        }
    };
    let sent = if method == Method::HEAD { 0 } else { len };
    let place = match room.take(sent) {
        Ok(place) => place,
        Err(Full) => {
            tracing::warn!("as many images are being sent as there is room for; further ones are put off");
            return Ok((StatusCode::SERVICE_UNAVAILABLE, [(header::RETRY_AFTER, AGAIN)]).into_response());
        }
    };
    let mut reader = tokio::fs::File::from_std(file.file);
    reader.seek(SeekFrom::Start(first)).await?;
    let body = Body::from_stream(ReaderStream::with_capacity(Placed::new(reader.take(len), place), CHUNK));
    let mut response = (status, body).into_response();
    let headers = response.headers_mut();
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    headers.insert(header::CONTENT_LENGTH, len.into());
    for (name, value) in [(header::ETAG, Some(etag)), (header::CONTENT_RANGE, content_range)] {
        if let Some(value) = value.and_then(|v| HeaderValue::from_str(&v).ok()) {
            headers.insert(name, value);
        }
    }
    Ok(response)
}
