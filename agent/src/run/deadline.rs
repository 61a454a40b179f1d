//! Deadlines around what has none of its own: a driver's probe, a hung disk, a server that trickles.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use tokio::time::timeout;

use super::Failure;
use crate::deploy::{Progress, Step};

/// Longest time an installation may take to move [`LEAST`]. Longer than the download's own patience, whose error
/// says more, and than the kernel takes to give up on a command to a disk.
const STANDSTILL: Duration = Duration::from_secs(20 * 60);
/// Bytes that count as moving: a server that sends a byte a minute is not.
const LEAST: u64 = 1 << 20;

/// Runs `work`, for as long as `limit`.
///
/// # Errors
/// Its own, or that it did not end.
pub(super) async fn within<T>(
    step: &'static str,
    limit: Duration,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let ended = timeout(limit, work).await;
    ended.unwrap_or_else(|_| Err(Failure::new(step, &format!("did not end within {} s", limit.as_secs()))))
}

/// Runs `work`, which may block, on a thread of its own for as long as `limit`. What hangs is left behind.
///
/// # Errors
/// When it did not end, or ended by a fault.
pub(super) async fn blocking<T: Send + 'static>(
    step: &'static str,
    limit: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Failure> {
    let work = tokio::task::spawn_blocking(work);
    within(step, limit, async { work.await.map_err(Failure::at(step)) }).await
}

/// Runs a future to its end; [`None`] after a fault in it.
///
/// Nothing that still hangs in the runtime is waited for: a thread stuck in a dead device never ends, and the
/// machine would be parked.
pub(super) fn to_the_end<T>(runtime: Runtime, future: impl Future<Output = T>) -> Option<T> {
    let result = catch_unwind(AssertUnwindSafe(|| runtime.block_on(future)));
    runtime.shutdown_background();
    result.ok()
}

/// Notices that an installation stands still.
#[derive(Debug, Default)]
pub(super) struct Standstill {
    last: Option<(Instant, Step, u64)>,
}

impl Standstill {
    /// Looks at `now`; how long it has stood still, once that is too long.
    pub(super) fn look(&mut self, progress: &Progress, now: Instant) -> Option<Duration> {
        let (step, moved) = (progress.snapshot().step, progress.moved());
        match self.last {
            Some((since, last, before)) if last == step && moved.saturating_sub(before) < LEAST => {
                let still = now.saturating_duration_since(since);
                (still >= STANDSTILL).then_some(still)
            }
            _ => {
                self.last = Some((now, step, moved));
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runtime() -> Runtime {
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
    }

    #[test]
    fn what_hangs_is_left_behind_with_a_reason() {
        let start = Instant::now();
        let (hang, hung) = std::sync::mpsc::channel::<()>();
        let result = to_the_end(runtime(), async {
            blocking("drivers", Duration::from_millis(50), move || hung.recv()).await.map(drop)
        });
        assert_eq!(result, Some(Err(Failure::new("drivers", "did not end within 0 s"))));
        assert!(start.elapsed() < Duration::from_secs(30));
        drop(hang);
    }

    #[test]
    fn a_download_gives_up_before_it_counts_as_standing_still() {
        let timing = crate::deploy::Timing::default();
        assert!(timing.give_up + timing.longest_asked + timing.stall + timing.connect < STANDSTILL);
    }

    #[test]
    fn a_fault_is_an_end_too() {
        assert_eq!(to_the_end(runtime(), async { assert!(std::env::args().count() > 99) }), None);
    }

    #[test]
    fn only_bytes_in_number_or_a_new_step_count_as_moving() {
        let (progress, start, minute) = (Progress::new(), Instant::now(), Duration::from_secs(60));
        let mut still = Standstill::default();
        progress.begin(Step::Writing, None);
        assert_eq!(still.look(&progress, start), None);
        progress.add(10);
        assert_eq!(still.look(&progress, start + 19 * minute), None);
        assert_eq!(still.look(&progress, start + 20 * minute), Some(20 * minute));
        progress.wrote(LEAST);
        assert_eq!(still.look(&progress, start + 21 * minute), None);
        assert_eq!(still.look(&progress, start + 40 * minute), None);
        progress.begin(Step::Flushing, None);
        assert_eq!(still.look(&progress, start + 41 * minute), None);
        assert_eq!(still.look(&progress, start + 61 * minute), Some(20 * minute));
    }
}
