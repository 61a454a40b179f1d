//! How often and how soon a call is tried again.

use std::time::Duration;

/// Attempts and waits; plain data, so that tests need not wait.
#[derive(Clone, Debug)]
pub struct Policy {
    /// Most time for a TCP and TLS connection.
    pub connect: Duration,
    /// Most time for one attempt.
    pub call: Duration,
    /// Most attempts to send the log, which nothing depends on.
    pub log_attempts: u32,
    /// Wait after the first failed attempt; doubles with each.
    pub first_wait: Duration,
    /// Longest wait between attempts.
    pub longest_wait: Duration,
    /// Wait between polls for user-data.
    pub poll: Duration,
    /// How long what decides the run is reported before giving up: a controller that is started anew, or one that a
    /// whole site calls after a power cut, is no reason to lose a host.
    pub patience: Duration,
    /// The same once the system is installed: giving up would waste a whole and verified disk.
    pub installed_patience: Duration,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            call: Duration::from_secs(30),
            log_attempts: 5,
            first_wait: Duration::from_millis(500),
            longest_wait: Duration::from_secs(8),
            poll: Duration::from_secs(5),
            patience: Duration::from_secs(10 * 60),
            installed_patience: Duration::from_secs(60 * 60),
        }
    }
}

/// The wait after the `failures`-th failed attempt, counted from one: doubled each time up to `longest`, then
/// shortened by up to a half at random, so that machines which failed together do not come back together.
pub(crate) fn back_off(failures: u32, first: Duration, longest: Duration) -> Duration {
    let mut random = [0; 2];
    // Without random numbers there is merely no jitter.
    let _ = getrandom::fill(&mut random);
    jittered(failures, first, longest, u16::from_ne_bytes(random))
}

fn jittered(failures: u32, first: Duration, longest: Duration, random: u16) -> Duration {
    let doubled = 2_u32.saturating_pow(failures.saturating_sub(1));
    let full = first.saturating_mul(doubled).min(longest);
    full - full / 2 * u32::from(random) / u32::from(u16::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn waits_double_up_to_the_longest() {
        let ms = Duration::from_millis;
        let waits: Vec<_> = (1..=6).map(|n| jittered(n, ms(500), ms(8000), 0)).collect();
        assert_eq!(waits, [ms(500), ms(1000), ms(2000), ms(4000), ms(8000), ms(8000)]);
    }

    proptest! {
        #[test]
        fn jitter_takes_at_most_half(failures in 1_u32.., random: u16) {
            let (first, longest) = (Duration::from_millis(500), Duration::from_secs(8));
            let full = jittered(failures, first, longest, 0);
            let wait = jittered(failures, first, longest, random);
            prop_assert!(wait <= full && wait >= full / 2 - Duration::from_nanos(1));
        }
    }
}
