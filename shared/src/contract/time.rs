//! Instants as the contract writes them: RFC 3339, UTC, whole seconds.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Seconds since the Unix epoch. Written `2026-11-29T19:47:30Z`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Time(i64);

/// Why a text is not a [`Time`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{found:?} is not a time: expected RFC 3339 such as 2026-11-29T19:47:30Z")]
pub struct TimeError {
    /// What was given, cut to a printable length.
    pub found: String,
}

impl Time {
    /// The instant this many seconds after the epoch.
    pub fn from_unix(seconds: i64) -> Self {
        Self(seconds)
    }

    /// Seconds since the epoch.
    pub fn unix(self) -> i64 {
        self.0
    }

    /// How long after `earlier` this is; zero when it is not after it.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_secs(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

impl std::ops::Add<Duration> for Time {
    type Output = Self;

    fn add(self, by: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(by.as_secs()).unwrap_or(i64::MAX)))
    }
}

impl FromStr for Time {
    type Err = TimeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse::<jiff::Timestamp>()
            .map(|t| Self(t.as_second()))
            .map_err(|_| TimeError { found: text.chars().take(64).collect() })
    }
}

impl TryFrom<String> for Time {
    type Error = TimeError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Time> for String {
    fn from(time: Time) -> Self {
        time.to_string()
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Instants outside the calendar's range can only come from arithmetic; show the nearest that is in it.
        let clamped = self.0.clamp(jiff::Timestamp::MIN.as_second(), jiff::Timestamp::MAX.as_second());
        match jiff::Timestamp::from_second(clamped) {
            Ok(timestamp) => write!(f, "{timestamp}"),
            Err(_) => write!(f, "{clamped}"),
        }
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
