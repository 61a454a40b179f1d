//! Fetches the image over HTTP, from one of several places, and goes on where a connection broke off.
//!
//! No server is trusted: the digest alone says whether the bytes are right, so the certificates of image servers
//! are not checked and a resumed download needs no more than plausible headers.

mod answer;
mod download;
mod pace;
mod places;

use std::sync::Arc;
use std::time::Duration;

use farrier_shared::contract::WebUrl;
use farrier_shared::contract::options::MinRate;
use reqwest::redirect;

pub(super) use self::download::Download;
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
    /// How long a server may be slower than [`Source::min_rate`].
    pub rate_window: Duration,
    /// Most answers in a row, at each place, that begin well and bring no byte, or too few in a window.
    pub attempts: u32,
    /// How long attempts may fail without a new byte: a server that is started anew, or a switch that fails over, takes
    /// minutes.
    pub give_up: Duration,
    /// Wait after the first failed attempt; doubles with each.
    pub first_wait: Duration,
    /// Longest wait between attempts.
    pub longest_wait: Duration,
    /// Longest wait that a server is granted which asks for one (`Retry-After`).
    pub longest_asked: Duration,
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
            rate_window: Duration::from_secs(30),
            attempts: 8,
            give_up: Duration::from_secs(10 * 60),
            first_wait: Duration::from_millis(500),
            longest_wait: Duration::from_secs(20),
            longest_asked: Duration::from_secs(120),
            partitions: Duration::from_secs(20),
            partition_poll: Duration::from_millis(200),
            stop: Duration::from_secs(120),
        }
    }
}

/// Where an image is.
#[derive(Clone, Debug)]
pub struct Source {
    /// The place that is tried first.
    pub image: WebUrl,
    /// Further places of the same image (`farrier.mirrors`).
    pub mirrors: Vec<WebUrl>,
    /// What a server must bring at least (`farrier.min-rate`).
    pub min_rate: MinRate,
}

impl Source {
    /// This place alone, however slow.
    pub fn new(image: WebUrl) -> Self {
        Self { image, mirrors: Vec::new(), min_rate: MinRate::default() }
    }

    /// Who served the bytes, for messages.
    pub(super) fn hosts(&self) -> String {
        let host = self.image.authority();
        if self.mirrors.is_empty() { host } else { format!("{host} or a mirror") }
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
    pub async fn peek(&self, source: &Source) -> Result<ImageFacts, DeployError> {
        let mut download = self.download(source);
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

    pub(super) fn download(&self, source: &Source) -> Download {
        Download::new(self, source)
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
