//! Chance that can be asked for again: a seed gives the same numbers everywhere.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::ops::Range;

/// SplitMix64.
#[derive(Clone, Debug)]
pub struct Chance(u64);

impl Chance {
    /// The seed in `FARRIER_SEED`, else one of the moment. Prints it.
    pub fn seeded() -> Self {
        let given = std::env::var("FARRIER_SEED").ok().and_then(|text| text.parse().ok());
        let seed = given.unwrap_or_else(|| RandomState::new().build_hasher().finish());
        println!("FARRIER_SEED={seed}");
        Self(seed)
    }

    /// A number of the range, which must not be empty.
    pub fn within(&mut self, range: Range<u64>) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        range.start + (z ^ (z >> 31)) % (range.end - range.start)
    }
}
