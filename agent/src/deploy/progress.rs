//! What the pipeline tells of itself while it runs: a few atomics, written by its threads, sampled by the run.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Instant;

/// What is being done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing has begun.
    Waiting,
    /// Fetching, hashing, decoding and writing.
    Writing,
    /// Waiting for the disk to take what it was given.
    Flushing,
    /// Reading the disk back.
    Verifying,
    /// Completing the partition table and waiting for the kernel to see it.
    Partitioning,
    /// Planting the user-data.
    Seeding,
    /// All done.
    Done,
}

impl Step {
    const ALL: [Self; 7] = [
        Self::Waiting,
        Self::Writing,
        Self::Flushing,
        Self::Verifying,
        Self::Partitioning,
        Self::Seeding,
        Self::Done,
    ];

    /// One lower-case word, as sent in events.
    pub fn word(self) -> &'static str {
        match self {
            Self::Waiting => "wait",
            Self::Writing => "write",
            Self::Flushing => "flush",
            Self::Verifying => "verify",
            Self::Partitioning => "partition",
            Self::Seeding => "seed",
            Self::Done => "done",
        }
    }
}

/// Shared state of one installation. Each number is read on its own; a sample may mix two moments, no more.
#[derive(Debug, Default)]
pub struct Progress {
    step: AtomicU8,
    bytes: AtomicU64,
    /// Zero when unknown.
    total: AtomicU64,
    /// Bytes that went anywhere, in all steps: an image of zeros hardly counts as served, yet takes long to write.
    moved: AtomicU64,
}

/// One look at a [`Progress`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// What is being done.
    pub step: Step,
    /// Bytes done in this step: served bytes when writing, image bytes when verifying.
    pub bytes: u64,
    /// Bytes to do in this step, when known.
    pub total: Option<u64>,
    /// Rate since the sample before, when both fell in one step.
    pub bytes_per_second: Option<u64>,
}

impl Progress {
    /// Nothing has begun.
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins a step of `total` bytes, if that is known.
    pub fn begin(&self, step: Step, total: Option<u64>) {
        let index = Step::ALL.iter().position(|s| *s == step).and_then(|i| u8::try_from(i).ok());
        self.bytes.store(0, Ordering::Relaxed);
        self.total.store(total.unwrap_or(0), Ordering::Relaxed);
        self.step.store(index.unwrap_or(0), Ordering::Relaxed);
    }

    /// Counts bytes done.
    pub fn add(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.wrote(bytes);
    }

    /// Counts bytes the disk took, which no step counts as done.
    pub fn wrote(&self, bytes: u64) {
        self.moved.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Bytes that went anywhere since the beginning: what stands still for long hangs.
    pub fn moved(&self) -> u64 {
        self.moved.load(Ordering::Relaxed)
    }

    /// Where it stands, without a rate.
    pub fn snapshot(&self) -> Snapshot {
        let step = Step::ALL.get(usize::from(self.step.load(Ordering::Relaxed))).copied();
        let total = self.total.load(Ordering::Relaxed);
        Snapshot {
            step: step.unwrap_or(Step::Waiting),
            bytes: self.bytes.load(Ordering::Relaxed),
            total: (total > 0).then_some(total),
            bytes_per_second: None,
        }
    }
}

/// Turns looks at a [`Progress`] into rates.
#[derive(Debug, Default)]
pub struct Sampler {
    last: Option<(Instant, Snapshot)>,
}

impl Sampler {
    /// A sampler that has seen nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Where it stands at `now`, with the rate since the last sample.
    pub fn sample(&mut self, progress: &Progress, now: Instant) -> Snapshot {
        let mut snapshot = progress.snapshot();
        if let Some((then, last)) = &self.last
            && last.step == snapshot.step
            && let Some(done) = snapshot.bytes.checked_sub(last.bytes)
        {
            let millis = now.saturating_duration_since(*then).as_millis();
            let rate = (u128::from(done) * 1000).checked_div(millis);
            snapshot.bytes_per_second = rate.and_then(|r| u64::try_from(r).ok());
        }
        self.last = Some((now, snapshot));
        snapshot
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_rate_is_that_since_the_last_sample_of_the_same_step() {
        let progress = Progress::new();
        let mut sampler = Sampler::new();
        let start = Instant::now();
        progress.begin(Step::Writing, Some(10_000));
        assert_eq!(sampler.sample(&progress, start).bytes_per_second, None);
        progress.add(4_000);
        let second = sampler.sample(&progress, start + Duration::from_secs(2));
        assert_eq!((second.bytes, second.bytes_per_second), (4_000, Some(2_000)));
        progress.begin(Step::Verifying, None);
        progress.add(1);
        let third = sampler.sample(&progress, start + Duration::from_secs(3));
        assert_eq!((third.step, third.total, third.bytes_per_second), (Step::Verifying, None, None));
    }

    #[test]
    fn two_samples_at_one_moment_have_no_rate() {
        let progress = Progress::new();
        let mut sampler = Sampler::new();
        let now = Instant::now();
        sampler.sample(&progress, now);
        progress.add(1);
        assert_eq!(sampler.sample(&progress, now).bytes_per_second, None);
    }
}
