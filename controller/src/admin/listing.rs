//! Lists of objects, sent as they are read: ten thousand hosts with their reports never are in memory at once.

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use farrier_shared::contract::Name;
use farrier_shared::resource::Resource;
use serde_json::Value;

use super::error::ApiError;
use crate::store::{Page, Store, StoreError};

/// Objects read at a time.
const PAGE: usize = 128;

/// What is left of a list that is being sent.
struct Listing<R> {
    store: Store,
    namespace: Option<Name>,
    show: fn(R) -> Result<Value, ApiError>,
    /// Read and not sent yet.
    page: Page<R>,
    /// Whether something was sent.
    begun: bool,
}

/// Why a list breaks off in the middle. Its reader sees an answer that is cut off.
#[derive(Debug, thiserror::Error)]
enum ListingError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("an object cannot be shown")]
    Shown,
}

/// Every object of a namespace, or of all, as `{"items": […]}`.
///
/// # Errors
/// When the first of them cannot be read.
pub(super) async fn answer<R: Resource>(
    store: Store,
    namespace: Option<Name>,
    show: fn(R) -> Result<Value, ApiError>,
) -> Result<Response, ApiError> {
    let page = store.page(namespace.as_ref(), None, PAGE).await?;
    let listing = Listing { store, namespace, show, page, begun: false };
    let chunks = futures_util::stream::try_unfold(Some(listing), |listing| async move {
        let Some(listing) = listing else { return Ok(None) };
        let sent = listing.next().await;
        if let Err(error) = &sent {
            tracing::error!(%error, "a list was cut off");
        }
        sent.map(Some)
    });
    let kind = [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    Ok((kind, Body::from_stream(chunks)).into_response())
}

impl<R: Resource> Listing<R> {
    /// The text of a page, and what is left after it.
    async fn next(mut self) -> Result<(Bytes, Option<Self>), ListingError> {
        let mut text = if self.begun { Vec::new() } else { br#"{"items":["#.to_vec() };
        let mut separate = self.begun;
        self.begun = true;
        for object in std::mem::take(&mut self.page.items) {
            if std::mem::replace(&mut separate, true) {
                text.push(b',');
            }
            let shown = (self.show)(object).map_err(|_| ListingError::Shown)?;
            serde_json::to_writer(&mut text, &shown).map_err(|_| ListingError::Shown)?;
        }
        let Some(after) = self.page.next.take() else {
            text.extend_from_slice(b"]}");
            return Ok((text.into(), None));
        };
        self.page = self.store.page(self.namespace.as_ref(), Some(&after), PAGE).await?;
        Ok((text.into(), Some(self)))
    }
}
