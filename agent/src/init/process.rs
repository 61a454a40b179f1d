//! What PID 1 sets up for itself.

use std::fs;

use nix::sys::mman::{MlockAllFlags, mlockall};
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::stat::{Mode, umask};
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime, clock_settime};

use crate::sys::signals;
use crate::time::BUILT;

/// Enough for every queue and connection of a run.
const OPEN_FILES: u64 = 65_536;
/// Seconds after which a kernel panic becomes a reboot: a machine never parks.
const PANIC_REBOOT: &str = "10";
/// Limits, signals, memory, clock. Nothing here is worth failing a run for.
pub(super) fn prepare() {
    umask(Mode::from_bits_truncate(0o077));
    signals::ignore_children_and_pipes();
    if let Err(errno) = setrlimit(Resource::RLIMIT_NOFILE, OPEN_FILES, OPEN_FILES) {
        tracing::warn!(%errno, "limit of open files not raised");
    }
    // The program itself only: pages of it must not be dropped and read again. Secrets come later and are not locked, since
    // nothing here ever makes a swap area to which memory could go; `MCL_FUTURE` would lock every buffer of the image.
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
    let Some(floor) = floor(now.tv_sec(), i64::try_from(BUILT).unwrap_or(0)) else { return };
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
}
