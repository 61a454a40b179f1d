//! Waiting with a deadline and a reason.

use std::fmt::Debug;
use std::time::Duration;

use anyhow::{Result, bail};
use tokio::time::{Instant, sleep};

/// Asks every quarter second until `done` says yes, and returns what it was said yes to.
///
/// # Errors
/// When that takes longer than `limit`, with what was seen last; or at once when asking fails.
pub async fn until<T: Debug>(
    limit: Duration,
    what: &str,
    mut ask: impl AsyncFnMut() -> Result<T>,
    done: impl Fn(&T) -> bool,
) -> Result<T> {
    let deadline = Instant::now() + limit;
    loop {
        let seen = ask().await?;
        if done(&seen) {
            return Ok(seen);
        }
        if Instant::now() > deadline {
            bail!("waited {} s for {what}; last seen: {seen:?}", limit.as_secs());
        }
        sleep(Duration::from_millis(250)).await;
    }
}
