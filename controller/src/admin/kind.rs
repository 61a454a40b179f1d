//! The kinds of objects the API serves, by their path segment.

use std::fmt;
use std::str::FromStr;

/// A kind of object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// PhysicalHost.
    Host,
    /// Beskar7Machine.
    Machine,
    /// Secret.
    Secret,
}

/// Why a text names no kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{found:?} is no kind of object: expected hosts, machines or secrets")]
pub struct KindError {
    /// What was given, cut to a printable length.
    pub found: String,
}

impl Kind {
    /// The path segment.
    pub fn segment(self) -> &'static str {
        match self {
            Self::Host => "hosts",
            Self::Machine => "machines",
            Self::Secret => "secrets",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.segment().trim_end_matches('s'))
    }
}

impl FromStr for Kind {
    type Err = KindError;

    /// Singular, plural, or the kind as in YAML; any case.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.to_ascii_lowercase().as_str() {
            "host" | "hosts" | "physicalhost" | "physicalhosts" | "ph" => Ok(Self::Host),
            "machine" | "machines" | "beskar7machine" | "beskar7machines" | "b7m" => Ok(Self::Machine),
            "secret" | "secrets" => Ok(Self::Secret),
            _ => Err(KindError { found: text.chars().take(40).collect() }),
        }
    }
}
