//! Image digests by URL: whether one is needed, what a checksum file says, and when to try again.
//!
//! Fetching is the shell's; its limits stand here. No error repeats what the server sent.

use std::time::Duration;

use super::timing::Timings;
use crate::contract::digest::Digest;
use crate::contract::web_url::WebUrl;

/// Largest checksum file, in bytes.
pub const MAX_BODY: usize = 64 << 10;
/// Most redirects followed, all to the same scheme, host and port.
pub const MAX_REDIRECTS: usize = 3;
/// Longest fetch, redirects and body included.
pub const FETCH_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a fresh resolution is used again without another fetch.
pub const REUSE: Duration = Duration::from_secs(120);

/// Why a checksum file gives no digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ChecksumError {
    /// The image URL ends in a slash or has no path.
    #[error(
        "the image URL names no file, so the checksum file cannot be searched for it; set targetImageDigest"
    )]
    NoFileName,
    /// The file is larger than it may be.
    #[error("the checksum file is larger than {MAX_BODY} bytes")]
    TooLarge,
    /// Not text.
    #[error("the checksum file is not text")]
    NotText,
    /// No line for the image.
    #[error("the checksum file has no entry for the image")]
    NoEntry,
    /// A line for the image, but of another algorithm.
    #[error("the checksum file's entry for the image is not SHA-256")]
    NotSha256,
    /// Two lines for the image that differ.
    #[error("the checksum file has conflicting entries for the image")]
    Conflict,
}

/// The name a checksum file knows the image by: the last path segment of its URL, percent-decoded.
///
/// # Errors
/// [`ChecksumError::NoFileName`].
pub fn file_name(image: &WebUrl) -> Result<String, ChecksumError> {
    let url = image.to_url();
    let last = url.path_segments().and_then(|mut segments| segments.next_back()).unwrap_or_default();
    let name = percent_decoded(last).ok_or(ChecksumError::NoFileName)?;
    if name.is_empty() || name.contains(['/', '\n', '\r']) {
        Err(ChecksumError::NoFileName)
    } else {
        Ok(name)
    }
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let mut pair = [0];
            hex::decode_to_slice([rest.next()?, rest.next()?], &mut pair).ok()?;
            bytes.push(pair[0]);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}

/// The digest a checksum file gives for the image.
///
/// Understood are a file of one bare digest, GNU lines (`<hex>  name`, `<hex> *name`) and BSD lines
/// (`SHA256 (name) = <hex>`), in either case of hex; blank lines and those starting with `#` are skipped, a
/// leading `./` of a name is ignored.
///
/// # Errors
/// [`ChecksumError`]; never with the file's content.
pub fn parse_checksum_file(body: &[u8], image: &WebUrl) -> Result<Digest, ChecksumError> {
    if body.len() > MAX_BODY {
        return Err(ChecksumError::TooLarge);
    }
    let text = std::str::from_utf8(body).map_err(|_| ChecksumError::NotText)?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines: Vec<&str> = Vec::new();
    for line in text.lines().map(str::trim) {
        if !line.is_empty() && !line.starts_with('#') {
            lines.push(line);
        }
    }
    if let [only] = lines.as_slice()
        && let Some(digest) = sha256(only)
    {
        return Ok(digest);
    }
    let name = file_name(image)?;
    let mut found: Option<Digest> = None;
    let mut other_algorithm = false;
    for (algorithm, hex, entry) in lines.iter().filter_map(|line| entry(line)) {
        if entry.strip_prefix("./").unwrap_or(entry) != name {
            continue;
        }
        let digest =
            if algorithm.is_none_or(|a| a.eq_ignore_ascii_case("SHA256")) { sha256(hex) } else { None };
        match (digest, found) {
            (None, _) => other_algorithm = true,
            (Some(new), Some(old)) if new != old => return Err(ChecksumError::Conflict),
            (Some(new), _) => found = Some(new),
        }
    }
    found.ok_or(if other_algorithm { ChecksumError::NotSha256 } else { ChecksumError::NoEntry })
}

fn sha256(hex: &str) -> Option<Digest> {
    format!("sha256:{}", hex.to_ascii_lowercase()).parse().ok()
}

/// Algorithm (BSD form only), hex digits and file name of one line.
fn entry(line: &str) -> Option<(Option<&str>, &str, &str)> {
    if let Some((algorithm, rest)) = line.split_once(" (") {
        // The name itself may hold `) = `, the digits cannot.
        let (name, hex) = rest.rsplit_once(") = ")?;
        return Some((Some(algorithm.trim()), hex.trim(), name));
    }
    let (hex, name) = line.split_once(' ')?;
    let name = name.strip_prefix([' ', '*']).unwrap_or(name);
    hex.bytes().all(|b| b.is_ascii_hexdigit()).then_some((None, hex, name))
}

/// Failed fetches of one machine's checksum file; kept by the shell per machine UID and URL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backoff {
    failures: u32,
}

impl Backoff {
    /// Counts a failure; how long to wait before the next try: 30 s doubling to 5 min.
    pub fn failed(&mut self, timings: &Timings) -> Duration {
        self.failures = self.failures.saturating_add(1);
        timings.digest_backoff(self.failures)
    }
}
