//! One exchange with a BMC: pinned to its origin, bounded in time and size, and its faults told apart.

use std::sync::Arc;
use std::time::Duration;

use farrier_shared::lifecycle::fault::{Failure, Transient};
use reqwest::header::{ACCEPT, ETAG, HeaderName, IF_MATCH};
use reqwest::{Method, Response, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::Value;
use url::Url;

use super::classify::{Class, classify};
use super::gate::Gate;
use crate::bmc::access::authority;
use crate::bmc::{BmcError, HostAccess};

/// Largest answer read.
const MAX_ANSWER: usize = 1 << 20;

/// What an exchange is for: its name in errors, and what failing it means.
#[derive(Clone, Copy, Debug)]
pub(super) struct Purpose {
    /// As in "failed to …".
    pub(super) action: &'static str,
    pub(super) failure: Failure,
}

impl Purpose {
    pub(super) const fn connect(action: &'static str) -> Self {
        Self { action, failure: Failure::Connection }
    }

    pub(super) const fn login(action: &'static str) -> Self {
        Self { action, failure: Failure::Login }
    }

    pub(super) const fn query(action: &'static str) -> Self {
        Self { action, failure: Failure::Query }
    }
}

/// An answer and the version of what it shows.
#[derive(Debug)]
pub(super) struct Got<T> {
    pub(super) value: T,
    pub(super) etag: Option<String>,
}

/// Exchanges with one BMC.
pub(super) struct Transport {
    http: reqwest::Client,
    access: HostAccess,
    gate: Arc<Gate>,
}

impl Transport {
    pub(super) fn new(http: reqwest::Client, access: HostAccess, gate: Arc<Gate>) -> Self {
        Self { http, access, gate }
    }

    /// Host and port, for logs.
    pub(super) fn authority(&self) -> String {
        authority(&self.access.base)
    }

    /// Where Redfish begins.
    pub(super) fn root(&self) -> String {
        let path = self.access.base.path().trim_end_matches('/');
        if path.ends_with("/redfish/v1") { format!("{path}/") } else { format!("{path}/redfish/v1/") }
    }

    pub(super) async fn get<T: DeserializeOwned>(
        &self,
        link: &str,
        purpose: Purpose,
    ) -> Result<Got<T>, BmcError> {
        let (response, body) = self.exchange(Method::GET, link, None, None, purpose).await?;
        let etag = response.and_then(|v| v.to_str().ok().map(str::to_owned));
        // What serde says may quote what was sent; only the place is told.
        let value = serde_json::from_slice(&body).map_err(|e| {
            let place = format!("line {} column {}", e.line(), e.column());
            self.failed(purpose, None, format!("its answer is not the JSON expected, at {place}"))
        })?;
        Ok(Got { value, etag })
    }

    pub(super) async fn send(
        &self,
        method: Method,
        link: &str,
        body: &Value,
        etag: Option<&str>,
        purpose: Purpose,
    ) -> Result<(), BmcError> {
        self.exchange(method, link, Some(body), etag, purpose).await.map(drop)
    }

    async fn exchange(
        &self,
        method: Method,
        link: &str,
        body: Option<&Value>,
        etag: Option<&str>,
        purpose: Purpose,
    ) -> Result<(Option<reqwest::header::HeaderValue>, Vec<u8>), BmcError> {
        let url = self.resolve(link, purpose)?;
        let mut request = self
            .http
            .request(method, url)
            .basic_auth(self.access.username.as_str(), Some(self.access.password.as_str()))
            .header(ACCEPT, "application/json")
            .header(HeaderName::from_static("odata-version"), "4.0");
        if let Some(body) = body {
            request = request.json(body);
        }
        if let Some(etag) = etag {
            request = request.header(IF_MATCH, etag);
        }
        let _turn = self.gate.turn().await;
        let response = request.send().await.map_err(|e| self.broken(purpose, &e))?;
        let status = response.status();
        let etag = response.headers().get(ETAG).cloned();
        let body = self.read(response, purpose).await?;
        if status.is_success() { Ok((etag, body)) } else { Err(self.refused(purpose, status, &body)) }
    }

    /// A link of an answer as a URL of this BMC. Credentials follow links, so a link may not leave.
    fn resolve(&self, link: &str, purpose: Purpose) -> Result<Url, BmcError> {
        let base = &self.access.base;
        let url = base
            .join(link)
            .map_err(|_| self.failed(purpose, None, "it answered with a link that is no URL".to_owned()))?;
        let same = url.origin() == base.origin() && url.username().is_empty() && url.password().is_none();
        if same {
            return Ok(url);
        }
        Err(self.failed(
            purpose,
            None,
            "it answered with a link to another origin, which is refused".to_owned(),
        ))
    }

    async fn read(&self, mut response: Response, purpose: Purpose) -> Result<Vec<u8>, BmcError> {
        let too_large =
            || self.failed(purpose, None, format!("its answer is larger than {MAX_ANSWER} bytes"));
        let announced = response.content_length().and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
        if announced > MAX_ANSWER {
            return Err(too_large());
        }
        let mut body = Vec::with_capacity(announced);
        while let Some(chunk) = response.chunk().await.map_err(|e| self.broken(purpose, &e))? {
            if body.len() + chunk.len() > MAX_ANSWER {
                return Err(too_large());
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }

    /// The error of an exchange that brought no answer.
    fn broken(&self, purpose: Purpose, error: &reqwest::Error) -> BmcError {
        match classify(error) {
            Class::Transient(class) => BmcError::Unreachable {
                authority: self.authority(),
                action: purpose.action.to_owned(),
                class,
            },
            Class::Tls(reason) => {
                let connect = Purpose::connect(purpose.action);
                let advice =
                    "check its certificate, or give its CA or the certificate itself in caBundleSecretRef";
                self.failed(connect, None, format!("TLS failed: {reason}; {advice}"))
            }
            Class::NotHttp => self.failed(
                Purpose::connect(purpose.action),
                None,
                "what it answers is not HTTP; check scheme and port of its address".to_owned(),
            ),
        }
    }

    /// The error of an answer that is a refusal.
    fn refused(&self, purpose: Purpose, status: StatusCode, body: &[u8]) -> BmcError {
        let code = status.as_u16();
        if let Some(class) = Transient::of_status(code) {
            let action = purpose.action.to_owned();
            return BmcError::Unreachable { authority: self.authority(), action, class };
        }
        if status.is_redirection() {
            let reason = format!("it redirects (HTTP {code}), which is refused; give its final address");
            return self.failed(purpose, Some(code), reason);
        }
        if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            let reason = format!("it refuses the credentials (HTTP {code}); check user, password and role");
            return self.failed(Purpose::login(purpose.action), Some(code), reason);
        }
        let id = message_id(body).map(|id| format!(", {id}")).unwrap_or_default();
        self.failed(purpose, Some(code), format!("it answered HTTP {code}{id}"))
    }

    /// A failure that does not pass by itself.
    pub(super) fn failed(&self, purpose: Purpose, status: Option<u16>, reason: String) -> BmcError {
        BmcError::Failed {
            authority: self.authority(),
            action: purpose.action.to_owned(),
            failure: purpose.failure,
            reason,
            status,
        }
    }
}

/// Redfish's own name of an error, such as `Base.1.8.ActionNotSupported`. The text beside it is the BMC's, so it
/// stays out of conditions.
pub(super) fn message_id(body: &[u8]) -> Option<String> {
    let value: Value = serde_json::from_slice(body).ok()?;
    let error = value.get("error")?;
    let first = error.get("@Message.ExtendedInfo").and_then(|list| list.get(0)?.get("MessageId"));
    let id = first.or_else(|| error.get("code"))?.as_str()?;
    let plain = id.len() <= 100 && id.chars().all(|c| c.is_ascii_alphanumeric() || c == '.' || c == '_');
    plain.then(|| id.to_owned())
}

/// How long things may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// One exchange.
    pub(super) call: Duration,
    /// Its connection, TLS included.
    pub(super) connect: Duration,
    /// All reading of a system's interfaces together. With the three exchanges before it, a look stays within what it
    /// may take even at a BMC that is only just in time each time.
    pub(super) addresses: Duration,
    /// Between looks at a power state that is to change.
    pub(super) poll: Duration,
    /// The longest any power change is waited for, whatever the vendor.
    pub(super) settle: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            call: Duration::from_secs(30),
            connect: Duration::from_secs(10),
            addresses: Duration::from_secs(20),
            poll: Duration::from_secs(2),
            settle: Duration::from_secs(120),
        }
    }
}
