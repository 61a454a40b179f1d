//! How often and how soon a call is tried again.
use std::time::Duration;

/// Attempts and waits; plain data, so tests set them to nothing.
#[derive(Clone, Debug)]
pub struct Policy {
    /// Most time for a TCP connection.
    pub connect: Duration,
    /// Most time for one attempt.
    pub call: Duration,
    /// Most attempts of one call.
    pub attempts: u32,
    /// Wait after the first failure; doubles with each.
    pub first_wait: Duration,
    /// Longest wait between attempts.
    pub longest_wait: Duration,
    /// Wait between polls for user-data.
    pub poll: Duration,
    /// How long success is reported before giving up.
    pub patience: Duration,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            call: Duration::from_secs(30),
            attempts: 5,
            first_wait: Duration::from_millis(500),
            longest_wait: Duration::from_secs(8),
            poll: Duration::from_secs(5),
            patience: Duration::from_secs(10 * 60),
        }
    }
}
