//! The provider id, `b7://{namespace}/{host}`, which ties an installed node to its host.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::name::{HostKey, Name};

/// `b7://{namespace}/{host}` (contract v4.2, `beskar7.provider-id`).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ProviderId(HostKey);

/// Why a text is not a [`ProviderId`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{found:?} is not a provider id: expected `b7://<namespace>/<host>`")]
pub struct ProviderIdError {
    /// What was given, cut to a printable length.
    pub found: String,
}

impl ProviderId {
    /// The provider id of this host.
    pub fn of(host: &HostKey) -> Self {
        Self(host.clone())
    }

    /// The host it names.
    pub fn host(&self) -> &HostKey {
        &self.0
    }
}

impl FromStr for ProviderId {
    type Err = ProviderIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parse = || {
            let (namespace, name) = text.strip_prefix("b7://")?.split_once('/')?;
            Some(HostKey::new(namespace.parse::<Name>().ok()?, name.parse::<Name>().ok()?))
        };
        parse().map(Self).ok_or_else(|| ProviderIdError { found: text.chars().take(80).collect() })
    }
}

impl TryFrom<String> for ProviderId {
    type Error = ProviderIdError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<ProviderId> for String {
    fn from(id: ProviderId) -> Self {
        id.to_string()
    }
}

impl fmt::Display for ProviderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "b7://{}", self.0)
    }
}
