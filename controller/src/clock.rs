//! Where the controller reads the time, so that tests can say what time it is.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use farrier_shared::contract::Time;

/// The time of day, and a time that never jumps.
pub trait Clock: Send + Sync + fmt::Debug + 'static {
    /// The time of day, whole seconds.
    fn now(&self) -> Time;
    /// Time since some fixed instant; never goes back.
    fn monotonic(&self) -> Duration;
}

/// A clock, shared.
pub type SharedClock = Arc<dyn Clock>;

/// The machine's clocks.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock {
    started: Instant,
}

impl SystemClock {
    /// Starts counting monotonic time from here.
    pub fn shared() -> SharedClock {
        Arc::new(Self { started: Instant::now() })
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Time {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Time::from_unix(i64::try_from(since.as_secs()).unwrap_or(i64::MAX))
    }

    fn monotonic(&self) -> Duration {
        self.started.elapsed()
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
