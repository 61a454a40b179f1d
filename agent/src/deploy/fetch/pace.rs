//! Whether a server is fast enough.

use std::time::Duration;

/// Measures the rate over windows of waiting.
///
/// Only time spent waiting for the server counts: while the disk is what is slow, bytes are there when they are asked
/// for.
#[derive(Debug)]
pub(super) struct Pace {
    /// Bytes per second; [`None`] is no minimum.
    minimum: Option<u64>,
    window: Duration,
    waited: Duration,
    bytes: u64,
    /// Windows in a row that were too slow.
    slow: u32,
}

impl Pace {
    pub(super) fn new(minimum: Option<u64>, window: Duration) -> Self {
        Self { minimum, window, waited: Duration::ZERO, bytes: 0, slow: 0 }
    }

    /// Windows in a row that were too slow.
    pub(super) fn slow(&self) -> u32 {
        self.slow
    }

    /// Bytes came after a wait; the rate in bytes per second if a window has passed and it was too low.
    pub(super) fn took(&mut self, bytes: u64, waited: Duration) -> Option<u64> {
        let minimum = self.minimum?;
        self.bytes = self.bytes.saturating_add(bytes);
        self.waited += waited;
        if self.waited < self.window {
            return None;
        }
        let rate = (u128::from(self.bytes) * 1000).checked_div(self.waited.as_millis());
        let rate = rate.map_or(u64::MAX, |rate| u64::try_from(rate).unwrap_or(u64::MAX));
        self.restart();
        self.slow = if rate < minimum { self.slow + 1 } else { 0 };
        (rate < minimum).then_some(rate)
    }

    /// Another connection begins.
    pub(super) fn restart(&mut self) {
        (self.bytes, self.waited) = (0, Duration::ZERO);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_slow_window_is_told_with_its_rate_and_a_fast_one_forgives() {
        let mut pace = Pace::new(Some(100), 3 * SECOND);
        assert_eq!(
            [pace.took(50, SECOND), pace.took(0, SECOND), pace.took(40, SECOND)],
            [None, None, Some(30)]
        );
        assert_eq!((pace.took(299, 3 * SECOND), pace.slow()), (Some(99), 2));
        assert_eq!((pace.took(300, 3 * SECOND), pace.slow()), (None, 0));
    }

    #[test]
    fn time_that_is_not_waited_for_the_server_does_not_count() {
        let mut pace = Pace::new(Some(1 << 40), 3 * SECOND);
        assert!((0..1000).all(|_| pace.took(1, Duration::from_millis(1)).is_none()));
    }

    #[test]
    fn without_a_minimum_nothing_is_too_slow() {
        assert_eq!(Pace::new(None, SECOND).took(0, 1000 * SECOND), None);
    }
}
