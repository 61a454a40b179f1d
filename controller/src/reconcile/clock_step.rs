//! Following the machine's clock when it was set: by NTP some while after the start, by hand, or after a pause.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use farrier_shared::contract::Time;
use farrier_shared::lifecycle::{ClockStep, Progress};
use farrier_shared::resource::PhysicalHost;

use super::{PAGE, Shell};
use crate::clock::Clock;
use crate::store::StoreError;

/// Since when agents have been able to report, in monotonic time.
#[derive(Debug)]
pub(super) struct Listening(AtomicU64);

impl Listening {
    pub(super) fn since_now(clock: &dyn Clock) -> Self {
        Self(AtomicU64::new(clock.monotonic().as_secs()))
    }

    fn anew(&self, clock: &dyn Clock) {
        self.0.store(clock.monotonic().as_secs(), Ordering::Relaxed);
    }

    /// The same as a time of day, whatever became of the clock since; for a host that was paused, since it is no
    /// more.
    fn since(&self, clock: &dyn Clock, resumed: Option<Duration>) -> Time {
        let began = self.0.load(Ordering::Relaxed).max(resumed.unwrap_or_default().as_secs());
        let lasts = clock.monotonic().as_secs().saturating_sub(began);
        Time::from_unix(clock.now().unix().saturating_sub(i64::try_from(lasts).unwrap_or(i64::MAX)))
    }
}

impl Shell {
    /// Deadlines' view of one host: now, its progress, when a pause of it ended, all durations.
    pub(super) fn clock<'a>(
        &'a self,
        progress: Option<&'a Progress>,
        resumed: Option<Duration>,
    ) -> farrier_shared::lifecycle::Clock<'a> {
        let clock = self.ctx.clock.as_ref();
        farrier_shared::lifecycle::Clock {
            now: clock.now(),
            listening_since: self.listening.since(clock, resumed),
            progress,
            timings: &self.ctx.timings,
        }
    }

    /// Follows the clock if it was set, and takes every run along. No pass decides meanwhile: it would see the time of
    /// one clock and a run's of another.
    pub(super) async fn follow_clock(&self) {
        let clock = self.ctx.clock.as_ref();
        if clock.was_set().is_none() {
            return;
        }
        let _nobody_decides = self.deciding.write().await;
        if clock.was_set().is_none() {
            return;
        }
        let before = clock.now();
        let running = i64::try_from(clock.monotonic().as_secs()).unwrap_or(i64::MAX);
        let since = Time::from_unix(before.unix().saturating_sub(running));
        clock.follow();
        // What it comes to in the end, and not what a look in the middle of it showed.
        let seconds = clock.now().unix().saturating_sub(before.unix());
        let step = ClockStep { since, before, seconds };
        self.listening.anew(clock);
        self.memory.clock_was_set(step);
        let (was, is) = (before.to_string(), clock.now().to_string());
        match self.take_along(step).await {
            Ok(runs) => {
                tracing::warn!(seconds, was, is, runs, "the clock was set; deadlines of runs move along");
            }
            Err(error) => {
                tracing::error!(seconds, was, is, %error, "the clock was set, and deadlines of runs could not be moved");
            }
        }
    }

    /// Moves the times of every host that has a run; how many those are.
    async fn take_along(&self, step: ClockStep) -> Result<usize, StoreError> {
        let store = &self.ctx.store;
        let (mut after, mut moved) = (None, 0);
        loop {
            let page = store.page::<PhysicalHost>(None, after.as_ref(), PAGE).await?;
            for host in page.items.iter().filter(|host| host.spec.consumer_ref.is_some()) {
                moved += usize::from(self.take_host_along(host.clone(), step).await?);
            }
            after = page.next;
            if after.is_none() {
                return Ok(moved);
            }
        }
    }

    async fn take_host_along(&self, mut host: PhysicalHost, step: ClockStep) -> Result<bool, StoreError> {
        let (store, key) = (&self.ctx.store, host.metadata.key());
        if let Some(stored) = store.credentials(&key).await?
            && let Some(new) = step.apply_to_credentials(&stored.value)
        {
            // Replaced meanwhile means minted by the clock as it is now.
            match store.put_credentials(&key, &new, Some(&stored.version)).await {
                Ok(_) => {}
                Err(error) if error.is_conflict() => {}
                Err(error) => return Err(error),
            }
        }
        let before = host.status.clone();
        step.apply_to_host(&mut host.status);
        if host.status == before {
            return Ok(false);
        }
        match store.update(&host).await {
            Ok(_) => Ok(true),
            // A handler or the operator wrote since: once more from what is there now. Passes do not write meanwhile.
            Err(StoreError::Conflict { .. }) => match store.get::<PhysicalHost>(&key).await? {
                Some(mut host) => {
                    step.apply_to_host(&mut host.status);
                    store.update(&host).await.map(|_| true)
                }
                None => Ok(false),
            },
            Err(StoreError::NotFound { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// Between two looks at whether the clock was set.
pub(super) const LOOK: Duration = Duration::from_secs(5);
