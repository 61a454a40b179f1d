//! Talking to the controller's admin API.

use std::path::{Path, PathBuf};
use std::time::Duration;

use farrier_shared::contract::Name;
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde::de::DeserializeOwned;

use super::Global;
use super::failure::Failure;
use crate::admin::{ErrorBody, Info, Kind};

/// Where the controller's socket is when nothing else is said.
const DEFAULT_SOCKET: &str = "/var/lib/farrier/admin.sock";
/// Longest wait for an answer; the controller answers from memory and disk alone.
const ANSWER: Duration = Duration::from_secs(30);

/// A client of one controller.
pub(crate) struct Client {
    http: reqwest::Client,
    base: String,
    place: String,
    token: Option<zeroize::Zeroizing<String>>,
}

impl Client {
    /// By socket, or by URL and token.
    pub(crate) fn new(global: &Global) -> Result<Self, Failure> {
        let builder = reqwest::Client::builder().no_proxy().connect_timeout(Duration::from_secs(10));
        let (builder, base, place) = match &global.admin_url {
            Some(url) => (builder, url.as_str().trim_end_matches('/').to_owned(), url.authority()),
            None => {
                let socket = global.admin_socket.clone().unwrap_or_else(|| PathBuf::from(DEFAULT_SOCKET));
                let place = socket.display().to_string();
                (builder.unix_socket(socket), "http://farrier".to_owned(), place)
            }
        };
        let http = builder.build().map_err(|e| {
            Failure::failed(format!("cannot make an HTTP client: {e}"), "report this as a bug")
        })?;
        let token = global.admin_token_file.as_deref().map(read_token).transpose()?;
        Ok(Self { http, base, place, token })
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", self.base));
        match &self.token {
            Some(token) => request.bearer_auth(token.as_str()),
            None => request,
        }
    }

    async fn send(&self, request: RequestBuilder) -> Result<Response, Failure> {
        let response = request.send().await.map_err(|error| self.unreachable(&error))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        // Every error of a controller says why; a 404 of something else must not pass for an absent object.
        let stranger = |_| Failure::Unreachable {
            problem: format!("what answers at {} is no farrier admin API: HTTP {status}", self.place),
            hint: "point --admin-socket or --admin-url at the controller's admin API".to_owned(),
        };
        let body = response.json::<ErrorBody>().await.map_err(stranger)?;
        Err(Failure::answered(status.as_u16(), body.error))
    }

    /// The connection could not be made or broke.
    pub(crate) fn unreachable(&self, error: &reqwest::Error) -> Failure {
        let mut cause: &dyn std::error::Error = error;
        while let Some(inner) = cause.source() {
            cause = inner;
        }
        Failure::Unreachable {
            problem: format!("cannot reach the controller at {}: {cause}", self.place),
            hint: "start it with `farrier serve`, or point --admin-socket at its socket (as a user who may open it)"
                .to_owned(),
        }
    }

    async fn read<T: DeserializeOwned>(&self, response: Response) -> Result<T, Failure> {
        let body = response.bytes().await.map_err(|error| self.unreachable(&error))?;
        serde_json::from_slice(&body).map_err(|_| {
            let hint = "use the farrier command of the controller's version";
            Failure::failed(format!("the answer of {} is not understood", self.place), hint)
        })
    }

    /// Reads a path.
    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        let response = self.send(self.request(Method::GET, path).timeout(ANSWER)).await?;
        self.read(response).await
    }

    /// Sends an object; tells whether it is new.
    pub(crate) async fn put(&self, path: &str, body: &serde_json::Value) -> Result<bool, Failure> {
        let response = self.send(self.request(Method::PUT, path).timeout(ANSWER).json(body)).await?;
        Ok(response.status() == StatusCode::CREATED)
    }

    /// Creates an object.
    pub(crate) async fn post(&self, path: &str, body: &serde_json::Value) -> Result<(), Failure> {
        self.send(self.request(Method::POST, path).timeout(ANSWER).json(body)).await.map(drop)
    }

    /// Deletes an object.
    pub(crate) async fn delete(&self, path: &str) -> Result<(), Failure> {
        self.send(self.request(Method::DELETE, path).timeout(ANSWER)).await.map(drop)
    }

    /// Opens a stream of lines, without a deadline: it ends when either side leaves.
    pub(crate) async fn stream(&self, path: &str) -> Result<Response, Failure> {
        self.send(self.request(Method::GET, path)).await
    }

    /// What the controller says of itself.
    pub(crate) async fn info(&self) -> Result<Info, Failure> {
        self.get("/apis/v1/info").await
    }
}

/// Path of one object.
pub(crate) fn item(namespace: &Name, kind: Kind, name: &Name) -> String {
    format!("{}/{name}", collection(namespace, kind))
}

/// Path of a kind's objects in a namespace.
pub(crate) fn collection(namespace: &Name, kind: Kind) -> String {
    format!("/apis/v1/namespaces/{namespace}/{}", kind.segment())
}

fn read_token(path: &Path) -> Result<zeroize::Zeroizing<String>, Failure> {
    let text = std::fs::read_to_string(path).map(zeroize::Zeroizing::new).map_err(|error| {
        Failure::invalid(
            "--admin-token-file",
            format!("cannot read {path:?}: {error}"),
            "give the controller's token file",
        )
    })?;
    Ok(zeroize::Zeroizing::new(text.trim().to_owned()))
}
