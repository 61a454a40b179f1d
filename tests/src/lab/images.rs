//! An image server that fails on purpose: cut short, slow, absent.

use std::collections::HashMap;
use std::io::SeekFrom;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use futures_util::stream;
use tokio::fs::File;
use tokio::io::{AsyncReadExt as _, AsyncSeekExt as _};
use tokio::net::TcpListener;

/// Bytes sent at a time.
const CHUNK: usize = 64 << 10;

/// How one image is served.
#[derive(Clone, Debug)]
pub enum Served {
    /// As it is.
    Whole(PathBuf),
    /// The length is announced in full, and every connection closes after so many bytes of the file: whoever
    /// asks again for the rest gets nothing.
    CutAt(PathBuf, u64),
    /// At most so many bytes a second.
    Slow(PathBuf, u64),
}

type Shelf = Arc<Mutex<HashMap<String, Served>>>;

/// A running image server.
#[derive(Clone, Debug)]
pub struct Images {
    shelf: Shelf,
    base: String,
}

impl Images {
    /// Listens at `address`.
    ///
    /// # Errors
    /// When the address is taken.
    pub(super) async fn serve(address: SocketAddr) -> Result<Self> {
        let shelf = Shelf::default();
        let listener = TcpListener::bind(address).await.with_context(|| format!("listen on {address}"))?;
        let router = Router::new().route("/{name}", get(answer)).with_state(shelf.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Ok(Self { shelf, base: format!("http://{address}") })
    }

    /// Serves an image under `name`, and returns its URL.
    pub fn offer(&self, name: &str, served: Served) -> String {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), served);
        self.url(name)
    }

    /// The URL an image of this name has or would have.
    pub fn url(&self, name: &str) -> String {
        format!("{}/{name}", self.base)
    }
}

async fn answer(State(shelf): State<Shelf>, Path(name): Path<String>, headers: HeaderMap) -> Response {
    let served = shelf.lock().unwrap_or_else(PoisonError::into_inner).get(&name).cloned();
    let Some(served) = served else { return StatusCode::NOT_FOUND.into_response() };
    send(served, &headers)
        .await
        .unwrap_or_else(|error| (StatusCode::INTERNAL_SERVER_ERROR, format!("{error:#}")).into_response())
}

async fn send(served: Served, headers: &HeaderMap) -> Result<Response> {
    let (path, end, rate) = match served {
        Served::Whole(path) => (path, u64::MAX, u64::MAX),
        Served::CutAt(path, end) => (path, end, u64::MAX),
        Served::Slow(path, rate) => (path, u64::MAX, rate),
    };
    let mut file = File::open(&path).await.with_context(|| format!("open {}", path.display()))?;
    let len = file.metadata().await?.len();
    let first = headers.get(header::RANGE).and_then(|value| value.to_str().ok()).and_then(range_start);
    let start = first.unwrap_or(0).min(len);
    file.seek(SeekFrom::Start(start)).await?;
    let mut response =
        Body::from_stream(stream::try_unfold((file, start), move |state| next_chunk(state, end, rate)))
            .into_response();
    let answer = response.headers_mut();
    answer.insert(header::ACCEPT_RANGES, "bytes".parse()?);
    answer.insert(header::ETAG, format!("\"{len:x}\"").parse()?);
    answer.insert(header::CONTENT_LENGTH, (len - start).into());
    if first.is_some() {
        answer
            .insert(header::CONTENT_RANGE, format!("bytes {start}-{}/{len}", len.saturating_sub(1)).parse()?);
        *response.status_mut() = StatusCode::PARTIAL_CONTENT;
    }
    Ok(response)
}

async fn next_chunk(
    (mut file, at): (File, u64),
    end: u64,
    rate: u64,
) -> std::io::Result<Option<(Bytes, (File, u64))>> {
    if at >= end {
        return Err(std::io::Error::other("cut on purpose"));
    }
    let mut chunk = vec![0; CHUNK];
    let n = file.read(&mut chunk).await?;
    if n == 0 {
        return Ok(None);
    }
    chunk.truncate(n);
    if rate != u64::MAX {
        tokio::time::sleep(Duration::from_micros(n as u64 * 1_000_000 / rate)).await;
    }
    Ok(Some((chunk.into(), (file, at + n as u64))))
}

/// First byte of `bytes=N-`, the one form a resumed download uses.
fn range_start(text: &str) -> Option<u64> {
    text.strip_prefix("bytes=")?.split('-').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::range_start;

    #[test]
    fn the_first_byte_of_a_range_is_read() {
        assert_eq!(range_start("bytes=0-"), Some(0));
        assert_eq!(range_start("bytes=1048576-2097151"), Some(1_048_576));
        assert_eq!(range_start("items=0-"), None);
    }
}
