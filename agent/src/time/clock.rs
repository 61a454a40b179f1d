//! The machine's clock.

use std::io;
use std::time::{SystemTime, UNIX_EPOCH};

use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_settime};

use super::Unix;

/// A clock that can be set.
pub trait Clock: Send + Sync {
    /// What it says.
    fn now(&self) -> Unix;

    /// Sets it.
    ///
    /// # Errors
    /// When it cannot be set, as without privilege.
    fn set(&self, time: Unix) -> io::Result<()>;
}

/// The kernel's. The hardware clock behind it is left for the installed system to judge.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Unix {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs())
    }

    fn set(&self, time: Unix) -> io::Result<()> {
        let seconds = i64::try_from(time).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        Ok(clock_settime(ClockId::CLOCK_REALTIME, TimeSpec::new(seconds, 0))?)
    }
}
