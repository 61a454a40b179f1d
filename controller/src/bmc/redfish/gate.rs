//! One call at a time to each BMC, and not too many in a row: their processors are small.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::MutexGuard;
use tokio::time::Instant;

/// Between the end of a call and the start of the next.
const PAUSE: Duration = Duration::from_millis(50);

/// The gate of one BMC.
#[derive(Debug, Default)]
pub(super) struct Gate {
    last: tokio::sync::Mutex<Option<Instant>>,
}

/// Being let through; the next caller waits until this is dropped.
pub(super) struct Turn<'a>(MutexGuard<'a, Option<Instant>>);

impl Gate {
    pub(super) async fn turn(&self) -> Turn<'_> {
        let last = self.last.lock().await;
        if let Some(last) = *last {
            tokio::time::sleep_until(last + PAUSE).await;
        }
        Turn(last)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        *self.0 = Some(Instant::now());
    }
}

/// The gates of all BMCs, by origin. One that nobody holds any more is forgotten.
#[derive(Debug, Default)]
pub(super) struct Gates(Mutex<HashMap<String, Weak<Gate>>>);

impl Gates {
    pub(super) fn of(&self, origin: &str) -> Arc<Gate> {
        let mut gates = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(gate) = gates.get(origin).and_then(Weak::upgrade) {
            return gate;
        }
        gates.retain(|_, gate| gate.strong_count() > 0);
        let gate = Arc::new(Gate::default());
        gates.insert(origin.to_owned(), Arc::downgrade(&gate));
        gate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn calls_to_one_bmc_wait_for_each_other_and_for_a_pause() {
        let gates = Gates::default();
        let (one, same, other) = (gates.of("https://a"), gates.of("https://a"), gates.of("https://b"));
        assert!(Arc::ptr_eq(&one, &same));
        let begun = Instant::now();
        let held = one.turn().await;
        other.turn().await;
        assert!(tokio::time::timeout(Duration::from_secs(1), same.turn()).await.is_err());
        drop(held);
        let freed = Instant::now();
        same.turn().await;
        assert_eq!(Instant::now() - freed, PAUSE);
        assert!(freed > begun);
    }
}
