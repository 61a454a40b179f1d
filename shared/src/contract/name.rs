//! Names of namespaces and objects, and the pair that names a host.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Longest name accepted: an RFC 1123 subdomain, as Kubernetes limits object names.
pub const MAX_LEN: usize = 253;

/// A namespace or object name: lower-case RFC 1123 subdomain, 1..=253 bytes.
///
/// Safe in a URL path, a file name and a kernel command line without escaping. Clones share the text: a controller
/// has a host's name in a dozen places.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Name(Arc<str>);

/// Why a text is not a [`Name`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{found:?} is not a valid name: expected 1 to 253 characters of a-z, 0-9, '-' and '.', each dot-separated part starting and ending with a letter or digit"
)]
pub struct NameError {
    /// What was given, cut to a printable length.
    pub found: String,
}

impl Name {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Name {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let label_ok = |label: &str| {
            let bytes = label.as_bytes();
            !bytes.is_empty()
                && bytes.iter().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || *b == b'-')
                && bytes.first() != Some(&b'-')
                && bytes.last() != Some(&b'-')
        };
        if text.len() <= MAX_LEN && text.split('.').all(label_ok) {
            Ok(Self(text.into()))
        } else {
            Err(NameError { found: text.chars().take(64).collect() })
        }
    }
}

impl TryFrom<String> for Name {
    type Error = NameError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Name> for String {
    fn from(name: Name) -> Self {
        name.0.as_ref().to_owned()
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// Names one host: its namespace and its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct HostKey {
    /// Namespace of the host.
    pub namespace: Name,
    /// Name of the host.
    pub name: Name,
}

impl HostKey {
    /// Both parts together.
    pub fn new(namespace: Name, name: Name) -> Self {
        Self { namespace, name }
    }
}

impl fmt::Display for HostKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}
