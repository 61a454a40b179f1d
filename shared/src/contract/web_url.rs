//! URLs of images and of the controller: http or https, safe on a kernel command line.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use url::Url;

/// An `http` or `https` URL with a host, holding no white space, control character, double quote or
/// backslash.
///
/// Keeps the text as given, since the contract renders it byte for byte (section 5, SEC-7: no injection of
/// further command line parameters).
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct WebUrl {
    text: String,
}

/// Why a text is not a [`WebUrl`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WebUrlError {
    /// White space, control characters, double quotes and backslashes could smuggle in further parameters.
    #[error("URL holds white space, a double quote, a backslash or a control character; encode it as %XX")]
    Unsafe,
    /// Not a URL at all.
    #[error("not a URL: {reason}; expected http://HOST/PATH or https://HOST/PATH")]
    Malformed {
        /// What the parser said.
        reason: String,
    },
    /// A scheme other than http and https.
    #[error("URL scheme {found:?} is not supported: expected http or https")]
    Scheme {
        /// The scheme found.
        found: String,
    },
    /// No host.
    #[error("URL names no host: expected http://HOST/PATH or https://HOST/PATH")]
    NoHost,
}

impl WebUrl {
    /// The text as given.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The parsed URL.
    pub fn to_url(&self) -> Url {
        Url::parse(&self.text).unwrap_or_else(|_| unreachable!("a WebUrl was parsed when it was made"))
    }

    /// Host and port alone, for logs and errors: no path, no user, no query.
    pub fn authority(&self) -> String {
        let url = self.to_url();
        let host = url.host_str().unwrap_or_default();
        url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
    }
}

impl FromStr for WebUrl {
    type Err = WebUrlError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.chars().any(|c| c.is_whitespace() || c.is_control() || matches!(c, '"' | '\\')) {
            return Err(WebUrlError::Unsafe);
        }
        let url = Url::parse(text).map_err(|e| match e {
            url::ParseError::EmptyHost => WebUrlError::NoHost,
            other => WebUrlError::Malformed { reason: other.to_string() },
        })?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(WebUrlError::Scheme { found: url.scheme().to_owned() });
        }
        // Browsers read a host into `https:///x` and `https:x`; other parsers, and people, do not.
        let after_scheme = text.split_once("://").map_or("", |(_, rest)| rest);
        if url.host_str().is_none_or(str::is_empty)
            || after_scheme.is_empty()
            || after_scheme.starts_with('/')
        {
            return Err(WebUrlError::NoHost);
        }
        Ok(Self { text: text.to_owned() })
    }
}

impl TryFrom<String> for WebUrl {
    type Error = WebUrlError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<WebUrl> for String {
    fn from(url: WebUrl) -> Self {
        url.text
    }
}

impl fmt::Display for WebUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for WebUrl {
    /// Shows scheme and authority only: paths and queries may carry secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}/…", self.to_url().scheme(), self.authority())
    }
}
