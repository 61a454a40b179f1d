//! What PID 1 sets up for itself.

use std::fs;

use nix::sys::mman::{MlockAllFlags, mlockall};
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::stat::{Mode, umask};
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime, clock_settime};

use crate::sys::signals;

/// Enough for every queue and connection of a run.
const OPEN_FILES: u64 = 65_536;
/// Seconds after which a kernel panic becomes a reboot: a machine never parks.
const PANIC_REBOOT: &str = "10";
/// 2026-11-01, in seconds of the Unix epoch: older than any build of this version.
const WRITTEN: i64 = 1_793_491_200;
/// When this was built; no honest clock is behind it. Reproducible builds may set `SOURCE_DATE_EPOCH` to nothing
/// meaningful, such as 0.
const BUILT: i64 = match option_env!("SOURCE_DATE_EPOCH") {
    Some(text) if parse(text) > WRITTEN => parse(text),
    _ => WRITTEN,
};

/// Decimal digits to a number, at compile time; anything else ends it.
const fn parse(text: &str) -> i64 {
    let bytes = text.as_bytes();
    let mut value: i64 = 0;
    let mut i = 0;
    while i < bytes.len() && bytes[i].is_ascii_digit() {
        value = value.saturating_mul(10).saturating_add((bytes[i] - b'0') as i64);
        i += 1;
    }
    value
}

/// Limits, signals, memory, clock. Nothing here is worth failing a run for.
pub(super) fn prepare() {
    umask(Mode::from_bits_truncate(0o077));
    signals::ignore_children_and_pipes();
    if let Err(errno) = setrlimit(Resource::RLIMIT_NOFILE, OPEN_FILES, OPEN_FILES) {
        tracing::warn!(%errno, "limit of open files not raised");
    }
    // No swap here, but pages of ours must not be dropped and read again from a failing disk's neighbour either.
    if let Err(errno) = mlockall(MlockAllFlags::MCL_CURRENT) {
        tracing::debug!(%errno, "memory not locked");
    }
    if let Err(error) = fs::write("/proc/sys/kernel/panic", PANIC_REBOOT) {
        tracing::debug!(%error, "reboot after a kernel panic not set");
    }
    raise_clock();
}

/// A clock behind the build time comes from a dead battery, and would have every certificate "not yet valid".
fn raise_clock() {
    let Ok(now) = clock_gettime(ClockId::CLOCK_REALTIME) else { return };
    let Some(floor) = floor(now.tv_sec(), BUILT) else { return };
    match clock_settime(ClockId::CLOCK_REALTIME, TimeSpec::new(floor, 0)) {
        Ok(()) => tracing::warn!(
            was = now.tv_sec(),
            now = floor,
            "the clock was behind this build and was set to it"
        ),
        Err(errno) => tracing::warn!(%errno, "the clock is behind this build and cannot be set"),
    }
}

/// The time to set, when `now` cannot be right.
fn floor(now: i64, built: i64) -> Option<i64> {
    (now < built).then_some(built)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clock_behind_the_build_is_set() {
        assert_eq!(floor(0, 100), Some(100));
        assert_eq!(floor(100, 100), None);
        assert_eq!(floor(101, 100), None);
    }

    #[test]
    fn the_build_time_is_read_at_compile_time() {
        assert_eq!(parse("1793491200"), 1_793_491_200);
        assert_eq!(parse("12x"), 12);
    }
}
