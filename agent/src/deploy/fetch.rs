//! Fetches the image over HTTP, and goes on where a connection broke off.
//!
//! No server is trusted: the digest alone says whether the bytes are right, so the certificates of image servers
//! are not checked and a resumed download needs no more than plausible headers.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use farrier_shared::contract::WebUrl;
use reqwest::header::{
    ACCEPT_ENCODING, CONTENT_RANGE, ETAG, HeaderMap, HeaderName, IF_RANGE, LAST_MODIFIED, RANGE,
};
use reqwest::{Response, StatusCode, redirect};

use super::DeployError;
use super::decode::{Limits, declared_size, decoder};
use super::format::{Format, HEAD};
use crate::callback::root_cause;
use crate::disk::gpt::Gpt;

/// Most redirects followed.
const MAX_REDIRECTS: usize = 5;
/// Bytes looked at by [`ImageClient::peek`]: enough for the format, and for the partition table behind it.
const PEEK: usize = 1 << 20;

/// Patience with the image server and the kernel; plain data, so that tests need not wait.
#[derive(Clone, Debug)]
pub struct Timing {
    /// Most time for a TCP and TLS connection.
    pub connect: Duration,
    /// Most time without a byte, or for an answer to begin.
    pub stall: Duration,
    /// Most attempts without any progress; each new byte grants them anew.
    pub attempts: u32,
    /// Wait after the first failed attempt; doubles with each.
    pub first_wait: Duration,
    /// Longest wait between attempts.
    pub longest_wait: Duration,
    /// Most time for the kernel to show the new partitions.
    pub partitions: Duration,
    /// Wait between looks for them.
    pub partition_poll: Duration,
    /// Most time for an installation given up to wipe its disk, which may be what it hangs in.
    pub stop: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            stall: Duration::from_secs(60),
            attempts: 8,
            first_wait: Duration::from_millis(500),
            longest_wait: Duration::from_secs(20),
            partitions: Duration::from_secs(20),
            partition_poll: Duration::from_millis(200),
            stop: Duration::from_secs(120),
        }
    }
}

/// What can be told of an image from its first bytes, before anything is destroyed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageFacts {
    /// Bytes the server will send, when it says.
    pub served: Option<u64>,
    /// Bytes a disk needs at least, as far as that is known, else 0: pass it to [`crate::disk::choose`].
    pub required: u64,
}

/// Fetches images.
#[derive(Clone, Debug)]
pub struct ImageClient {
    http: reqwest::Client,
    pub(super) timing: Timing,
}

impl ImageClient {
    /// A client that finds hosts by this resolver.
    ///
    /// # Errors
    /// When TLS cannot be set up.
    pub fn new(resolver: Arc<dyn reqwest::dns::Resolve>) -> Result<Self, DeployError> {
        Self::with_timing(resolver, Timing::default())
    }

    /// A client with other patience than the default.
    ///
    /// # Errors
    /// When TLS cannot be set up.
    pub fn with_timing(
        resolver: Arc<dyn reqwest::dns::Resolve>,
        timing: Timing,
    ) -> Result<Self, DeployError> {
        let follow = redirect::Policy::custom(|attempt| {
            if attempt.previous().len() > MAX_REDIRECTS {
                return attempt.error(TOO_MANY_REDIRECTS);
            }
            match attempt.url().scheme() {
                "http" | "https" => attempt.follow(),
                _ => attempt.error(FOREIGN_REDIRECT),
            }
        });
        let http = reqwest::Client::builder()
            .dns_resolver(resolver)
            .no_proxy()
            .redirect(follow)
            .referer(false)
            .connect_timeout(timing.connect)
            .tls_danger_accept_invalid_certs(true)
            .build()
            .map_err(|e| DeployError::Client { cause: root_cause(&e) })?;
        Ok(Self { http, timing })
    }

    /// Looks at the head of the image: its format, its size, its partition table.
    ///
    /// # Errors
    /// When it cannot be fetched, or is of no use whatever the disk.
    pub async fn peek(&self, url: &WebUrl) -> Result<ImageFacts, DeployError> {
        let mut download = self.download(url);
        let mut head = Vec::new();
        while head.len() < PEEK {
            let Some(bytes) = download.next().await? else { break };
            head.extend_from_slice(&bytes[..bytes.len().min(PEEK - head.len())]);
        }
        let format = Format::of(&head)?;
        let declared = declared_size(format, &head[..head.len().min(HEAD)])?.unwrap_or(0);
        let required = match format {
            Format::Raw => download.total.unwrap_or(0),
            _ => declared.max(declared_by_table(format, &head)),
        };
        Ok(ImageFacts { served: download.total, required })
    }

    pub(super) fn download(&self, url: &WebUrl) -> Download {
        Download {
            client: self.clone(),
            url: url.clone(),
            host: url.authority(),
            received: 0,
            skip: 0,
            total: None,
            mark: None,
            response: None,
            failures: 0,
        }
    }
}

/// Size of the disk that a compressed image was made for, if as much of it as came shows its partition table.
fn declared_by_table(format: Format, head: &[u8]) -> u64 {
    let mut decoded = Vec::new();
    if let Ok(mut reader) = decoder(format, head, Limits::SINGLE) {
        let mut piece = [0; 4096];
        // The head breaks off somewhere, so the decoder's error says nothing.
        while decoded.len() < PEEK
            && let Ok(n) = reader.read(&mut piece)
            && n > 0
        {
            decoded.extend_from_slice(&piece[..n]);
        }
    }
    Gpt::declared_size(&decoded).unwrap_or(0)
}

const TOO_MANY_REDIRECTS: &str = "more than 5 times";
const FOREIGN_REDIRECT: &str = "to something else than http or https";

/// What tells one version of a file from another.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Mark {
    header: HeaderName,
    value: Vec<u8>,
}

impl Mark {
    fn of(headers: &HeaderMap) -> Option<Self> {
        [ETAG, LAST_MODIFIED].into_iter().find_map(|header| {
            let value = headers.get(&header)?.as_bytes().to_vec();
            Some(Self { header, value })
        })
    }

    /// A weak entity tag may not be sent with a range (RFC 9110 section 13.1.5); we compare it ourselves.
    fn is_strong(&self) -> bool {
        !self.value.starts_with(b"W/")
    }
}

/// One image on its way.
#[derive(Debug)]
pub(super) struct Download {
    client: ImageClient,
    url: WebUrl,
    host: String,
    /// Bytes handed out.
    pub(super) received: u64,
    /// Bytes still to drop, since a server that knows no ranges starts anew.
    skip: u64,
    /// Bytes announced.
    pub(super) total: Option<u64>,
    mark: Option<Mark>,
    response: Option<Response>,
    /// Attempts without progress.
    failures: u32,
}

impl Download {
    /// The server the bytes come from.
    pub(super) fn host(&self) -> &str {
        &self.host
    }

    /// The next bytes, through whatever interruptions; [`None`] at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, DeployError> {
        loop {
            let response = match &mut self.response {
                Some(response) => response,
                none => match Self::connect(&self.client, &self.url, self.received, self.mark.as_ref()).await
                {
                    Ok(response) => {
                        let checked = self.check(&response)?;
                        match checked {
                            Ok(()) => self.response.insert(response),
                            Err(cause) => {
                                self.wait(cause).await?;
                                continue;
                            }
                        }
                    }
                    Err(Refused::Now(error)) => return Err(error),
                    Err(Refused::Perhaps(cause)) => {
                        *none = None;
                        self.wait(cause).await?;
                        continue;
                    }
                },
            };
            let cause = match tokio::time::timeout(self.client.timing.stall, response.chunk()).await {
                Ok(Ok(Some(mut bytes))) => {
                    let skipped = self.skip.min(bytes.len() as u64);
                    self.skip -= skipped;
                    bytes::Buf::advance(&mut bytes, usize::try_from(skipped).unwrap_or(usize::MAX));
                    if bytes.is_empty() {
                        continue;
                    }
                    self.received += bytes.len() as u64;
                    self.failures = 0;
                    return Ok(Some(bytes));
                }
                Ok(Ok(None)) if self.skip == 0 && self.total.is_none_or(|total| self.received >= total) => {
                    return Ok(None);
                }
                Ok(Ok(None)) => Cause::Text("the connection ended early".to_owned()),
                Ok(Err(error)) => Cause::Text(root_cause(&error)),
                Err(_) => Cause::Text(format!("no byte for {} s", self.client.timing.stall.as_secs())),
            };
            self.wait(cause).await?;
        }
    }

    async fn connect(
        client: &ImageClient,
        url: &WebUrl,
        received: u64,
        mark: Option<&Mark>,
    ) -> Result<Response, Refused> {
        let mut request = client.http.get(url.as_str()).header(ACCEPT_ENCODING, "identity");
        if received > 0 {
            request = request.header(RANGE, format!("bytes={received}-"));
            if let Some(mark) = mark.filter(|mark| mark.is_strong()) {
                request = request.header(IF_RANGE, mark.value.as_slice());
            }
        }
        let answer = tokio::time::timeout(client.timing.stall, request.send()).await;
        let answer = answer.map_err(|_| Refused::Perhaps(Cause::Text("no answer".to_owned())))?;
        answer.map_err(|error| {
            if error.is_redirect() {
                let text = root_cause(&error);
                let known = [FOREIGN_REDIRECT, TOO_MANY_REDIRECTS].into_iter().find(|t| text == *t);
                let cause = known.unwrap_or("in a way that cannot be followed");
                return Refused::Now(DeployError::Redirect { host: url.authority(), cause });
            }
            Refused::Perhaps(Cause::Text(root_cause(&error)))
        })
    }

    /// Whether this answer goes on where the last one stopped. The inner error is worth another attempt.
    fn check(&mut self, response: &Response) -> Result<Result<(), Cause>, DeployError> {
        let status = response.status();
        let host = response.url().host_str().unwrap_or_default().to_owned();
        let transient = matches!(status.as_u16(), 408 | 425 | 429) || status.is_server_error();
        let length = response
            .headers()
            .get(reqwest::header::CONTENT_LENGTH)
            .and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
        let (total, skip) = match status {
            StatusCode::OK => (length, self.received),
            StatusCode::PARTIAL_CONTENT if self.received > 0 => match content_range(response.headers()) {
                Some((first, total)) if first == self.received => (total.or(self.total), 0),
                _ => return Err(self.replaced("range")),
            },
            StatusCode::RANGE_NOT_SATISFIABLE if self.received > 0 => {
                return Err(self.truncated().unwrap_or_else(|| self.replaced("length")));
            }
            _ if transient => return Ok(Err(Cause::Status(status.as_u16(), host))),
            _ => return Err(DeployError::Status { status: status.as_u16(), host }),
        };
        let mark = Mark::of(response.headers());
        if self.received > 0 {
            if self.mark.is_some() && mark.is_some() && mark != self.mark {
                return Err(self.replaced("version mark"));
            }
            if self.total.is_some() && total != self.total {
                return Err(self.replaced("length"));
            }
        } else {
            (self.total, self.mark) = (total, mark);
        }
        self.skip = skip;
        Ok(Ok(()))
    }

    /// Drops the connection and waits before the next attempt, or gives up.
    async fn wait(&mut self, cause: Cause) -> Result<(), DeployError> {
        self.response = None;
        self.failures += 1;
        let timing = &self.client.timing;
        if self.failures >= timing.attempts {
            return Err(match cause {
                Cause::Status(status, host) => DeployError::Status { status, host },
                Cause::Text(cause) => self.truncated().unwrap_or(DeployError::Transport {
                    host: self.host.clone(),
                    cause,
                    received: self.received,
                    attempts: self.failures,
                }),
            });
        }
        tracing::warn!(host = self.host, received = self.received, attempt = self.failures, %cause, "image download interrupted");
        tokio::time::sleep(crate::callback::back_off(self.failures, timing.first_wait, timing.longest_wait))
            .await;
        Ok(())
    }

    fn truncated(&self) -> Option<DeployError> {
        let expected = self.total.filter(|total| self.received > 0 && self.received < *total)?;
        Some(DeployError::Truncated { host: self.host.clone(), received: self.received, expected })
    }

    fn replaced(&self, what: &'static str) -> DeployError {
        DeployError::Replaced { host: self.host.clone(), what, received: self.received }
    }
}

/// Why an attempt brought no response.
enum Refused {
    /// No further attempt would.
    Now(DeployError),
    Perhaps(Cause),
}

/// Why an attempt is worth another.
#[derive(Debug)]
enum Cause {
    Status(u16, String),
    Text(String),
}

impl std::fmt::Display for Cause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Status(status, host) => write!(f, "HTTP {status} from {host}"),
            Self::Text(text) => f.write_str(text),
        }
    }
}

/// First byte and whole length of `Content-Range: bytes 5-9/10`; the length may be `*`.
fn content_range(headers: &HeaderMap) -> Option<(u64, Option<u64>)> {
    let text = headers.get(CONTENT_RANGE)?.to_str().ok()?.strip_prefix("bytes ")?;
    let (range, total) = text.split_once('/')?;
    let (first, _) = range.split_once('-')?;
    Some((first.parse().ok()?, total.parse().ok()))
}
