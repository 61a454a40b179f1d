//! Where the controller reads the time, so that tests can say what time it is.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use farrier_shared::contract::Time;

/// The time of day, and a time that never jumps.
///
/// The time of day follows the machine's clock where that is corrected by a little. When the machine's clock is set,
/// it goes on as before until it is told to follow: whoever recorded times by it has them to correct first.
pub trait Clock: Send + Sync + fmt::Debug + 'static {
    /// The time of day, whole seconds.
    fn now(&self) -> Time;
    /// Time since some fixed instant; never goes back.
    fn monotonic(&self) -> Duration;
    /// By how many seconds the machine's clock was set, if it was; negative when it was set back.
    fn was_set(&self) -> Option<i64> {
        None
    }
    /// Shows from now on what the machine's clock shows.
    fn follow(&self) {}
}

/// A clock, shared.
pub type SharedClock = Arc<dyn Clock>;

/// Seconds by which the machine's clock may be off at once and count as corrected, not as set.
const CORRECTION: i64 = 30;

/// The machine's clocks.
#[derive(Debug)]
pub struct SystemClock {
    started: Instant,
    ahead: Ahead,
}

impl SystemClock {
    /// Starts counting monotonic time from here.
    pub fn shared() -> SharedClock {
        let started = Instant::now();
        Arc::new(Self { ahead: Ahead::new(wall(), started.elapsed()), started })
    }
}

/// Seconds since the epoch by the machine's clock.
fn wall() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

impl Clock for SystemClock {
    fn now(&self) -> Time {
        Time::from_unix(self.ahead.shown(wall(), self.monotonic()))
    }

    fn monotonic(&self) -> Duration {
        self.started.elapsed()
    }

    fn was_set(&self) -> Option<i64> {
        self.ahead.off(wall(), self.monotonic())
    }

    fn follow(&self) {
        self.ahead.set(wall(), self.monotonic());
    }
}

/// How many seconds the time of day is ahead of the monotonic time.
#[derive(Debug)]
struct Ahead(AtomicI64);

fn seconds(time: Duration) -> i64 {
    i64::try_from(time.as_secs()).unwrap_or(i64::MAX)
}

impl Ahead {
    fn new(wall: i64, monotonic: Duration) -> Self {
        Self(AtomicI64::new(wall.saturating_sub(seconds(monotonic))))
    }

    fn set(&self, wall: i64, monotonic: Duration) {
        self.0.store(wall.saturating_sub(seconds(monotonic)), Ordering::Relaxed);
    }

    /// By how much the machine's clock was set, if it was.
    fn off(&self, wall: i64, monotonic: Duration) -> Option<i64> {
        let expected = self.0.load(Ordering::Relaxed).saturating_add(seconds(monotonic));
        let off = wall.saturating_sub(expected);
        (off.saturating_abs() > CORRECTION).then_some(off)
    }

    /// The machine's clock with its small corrections, or what it would show had it not been set.
    fn shown(&self, wall: i64, monotonic: Duration) -> i64 {
        if self.off(wall, monotonic).is_none() {
            self.set(wall, monotonic);
        }
        self.0.load(Ordering::Relaxed).saturating_add(seconds(monotonic))
    }
}

/// A clock that stands still until it is told to move: for tests.
#[derive(Clone, Debug)]
pub struct ManualClock {
    start: Time,
    elapsed_ms: Arc<AtomicU64>,
}

impl ManualClock {
    /// A clock that shows `start`.
    pub fn at(start: Time) -> Self {
        Self { start, elapsed_ms: Arc::default() }
    }

    /// Moves both times forward.
    pub fn advance(&self, by: Duration) {
        self.elapsed_ms.fetch_add(u64::try_from(by.as_millis()).unwrap_or(u64::MAX), Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Time {
        self.start + self.monotonic()
    }

    fn monotonic(&self) -> Duration {
        Duration::from_millis(self.elapsed_ms.load(Ordering::SeqCst))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_corrections_are_followed_and_a_clock_that_was_set_is_followed_when_told() {
        let at = Duration::from_secs;
        let ahead = Ahead::new(1000, at(0));
        assert_eq!(ahead.shown(1010, at(10)), 1010);
        assert_eq!(ahead.shown(1029, at(20)), 1029, "nine seconds forward are a correction");
        assert_eq!(ahead.shown(1010, at(31)), 1010, "so are thirty back");
        for wall in [1_000_000, 0, i64::MAX] {
            assert_eq!(ahead.shown(wall, at(40)), 1019);
            assert!(ahead.off(wall, at(40)).is_some());
        }
        assert_eq!(ahead.off(5019, at(40)), Some(4000));
        ahead.set(5019, at(40));
        assert_eq!((ahead.off(5019, at(40)), ahead.shown(5020, at(41))), (None, 5020));
    }

    #[test]
    fn the_machines_clock_is_shown() {
        let clock = SystemClock::shared();
        assert!(clock.now().unix().abs_diff(wall()) < 5);
        assert_eq!(clock.was_set(), None);
        clock.follow();
        assert!(clock.now().unix().abs_diff(wall()) < 5);
    }
}
