//! The admin API as a fleet's operator uses it: many objects, whatever becomes of the controller meanwhile.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use reqwest::{Client, StatusCode};
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::NAMESPACE;

/// Longest answer waited for: a list of ten thousand hosts takes a while.
const LIMIT: Duration = Duration::from_secs(60);
/// How long one object may be tried for.
const PATIENCE: Duration = Duration::from_secs(120);
/// Requests at a time.
const AT_ONCE: usize = 32;

/// A client of the admin API.
#[derive(Clone, Debug)]
pub struct Admin {
    client: Client,
}

impl Admin {
    pub(super) fn new(socket: &Path) -> Result<Self> {
        let builder = Client::builder().unix_socket(socket).tls_certs_only([]).timeout(LIMIT);
        Ok(Self { client: builder.build().context("make a client")? })
    }

    pub(super) async fn is_up(&self) -> bool {
        let answer = self.client.get("http://admin/healthz").send().await;
        answer.is_ok_and(|response| response.status() == StatusCode::OK)
    }

    /// Creates objects, however often the controller has to be asked. One that is there already was created by
    /// a request whose answer was lost.
    ///
    /// # Errors
    /// When one is refused.
    pub(super) async fn create(
        &self,
        collection: &str,
        objects: impl IntoIterator<Item = Value>,
    ) -> Result<()> {
        stream::iter(objects)
            .map(|object| self.create_one(collection, object))
            .buffer_unordered(AT_ONCE)
            .try_collect()
            .await
    }

    async fn create_one(&self, collection: &str, object: Value) -> Result<()> {
        let url = format!("http://admin/apis/v1/namespaces/{NAMESPACE}/{collection}");
        let begun = Instant::now();
        loop {
            let answer = self.client.post(&url).json(&object).send().await;
            match answer {
                Ok(response) if matches!(response.status(), StatusCode::CREATED | StatusCode::CONFLICT) => {
                    return Ok(());
                }
                Ok(response) => {
                    let status = response.status();
                    bail!("{collection} {}: {status}: {}", object["metadata"]["name"], response.text().await?)
                }
                Err(error) if begun.elapsed() > PATIENCE => return Err(error.into()),
                Err(_) => sleep(Duration::from_millis(50)).await,
            }
        }
    }

    /// All objects of a collection.
    ///
    /// # Errors
    /// When the controller does not answer.
    pub async fn list(&self, collection: &str) -> Result<Vec<Value>> {
        let answer = self.get(&format!("namespaces/{NAMESPACE}/{collection}")).await?;
        answer["items"].as_array().cloned().with_context(|| format!("{collection}: no items"))
    }

    /// A host's log, oldest first.
    ///
    /// # Errors
    /// When the controller does not answer.
    pub async fn history(&self, host: &str) -> Result<Vec<Value>> {
        let answer = self.get(&format!("namespaces/{NAMESPACE}/hosts/{host}/history")).await?;
        answer.as_array().cloned().with_context(|| format!("{host}: the history is no list"))
    }

    async fn get(&self, path: &str) -> Result<Value> {
        let response = self.client.get(format!("http://admin/apis/v1/{path}")).send().await?;
        response.error_for_status()?.json().await.with_context(|| format!("read the answer of {path}"))
    }
}
