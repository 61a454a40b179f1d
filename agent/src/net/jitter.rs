//! Chance that keeps machines that boot together apart.

/// SplitMix64: small, and good enough for transaction ids and waits.
#[derive(Clone, Debug)]
pub(super) struct Jitter(u64);

impl Jitter {
    /// What follows from `seed`, and nothing else does.
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// The wait that stands in `waits` for this many tries; the last repeats.
pub(super) fn back_off(waits: &[u64], tries: u32) -> u64 {
    let step = usize::try_from(tries.saturating_sub(1)).unwrap_or(usize::MAX);
    waits.get(step).or(waits.last()).copied().unwrap_or_default()
}
