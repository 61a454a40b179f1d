//! The admin API over its unix socket.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use reqwest::{Client, Method, StatusCode};
use serde_json::Value;

/// Longest answer waited for.
const LIMIT: Duration = Duration::from_secs(10);

/// A client of the admin API, in the namespace `default`.
#[derive(Clone, Debug)]
pub struct Admin {
    client: Client,
}

impl Admin {
    pub(super) fn new(socket: &Path) -> Result<Self> {
        let client = Client::builder().unix_socket(socket).timeout(LIMIT).build().context("make a client")?;
        Ok(Self { client })
    }

    /// All objects of a collection.
    ///
    /// # Errors
    /// When the controller does not answer 200 with JSON.
    pub async fn list(&self, collection: &str) -> Result<Value> {
        self.get(&format!("/apis/v1/namespaces/default/{collection}")).await
    }

    /// One host.
    ///
    /// # Errors
    /// As [`list`](Self::list).
    pub async fn host(&self, name: &str) -> Result<Value> {
        self.get(&format!("/apis/v1/namespaces/default/hosts/{name}")).await
    }

    /// What happened to a host, oldest first.
    ///
    /// # Errors
    /// As [`list`](Self::list).
    pub async fn history(&self, name: &str) -> Result<Vec<Value>> {
        let answer = self.get(&format!("/apis/v1/namespaces/default/hosts/{name}/history")).await?;
        let entries = answer.as_array().or_else(|| answer["items"].as_array()).cloned();
        entries.with_context(|| format!("the history is no list: {answer}"))
    }

    /// How far a host's write is.
    ///
    /// # Errors
    /// As [`list`](Self::list).
    pub async fn progress(&self, name: &str) -> Result<Value> {
        self.get(&format!("/apis/v1/namespaces/default/hosts/{name}/progress")).await
    }

    /// Any request with a JSON body, answered with status and text.
    ///
    /// # Errors
    /// When there is no answer.
    pub async fn request(&self, method: Method, path: &str, body: String) -> Result<(StatusCode, String)> {
        let request = self.client.request(method, format!("http://admin{path}"));
        let response = request.header("content-type", "application/json").body(body).send().await?;
        let status = response.status();
        Ok((status, response.text().await?))
    }

    async fn get(&self, path: &str) -> Result<Value> {
        let response = self.client.get(format!("http://admin{path}")).send().await?;
        response.error_for_status()?.json().await.with_context(|| format!("read the answer of {path}"))
    }
}
