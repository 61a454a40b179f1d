//! The hardware watchdog: resets the machine should even this program hang.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::sys::watchdog::set_timeout;

const DEVICE: &str = "/dev/watchdog";
/// Seconds without a sign of life until the machine is reset.
const TIMEOUT: i32 = 60;
const INTERVAL: Duration = Duration::from_secs(10);
/// How often it is looked whether there is a device by now, and whether to stop.
const TICK: Duration = Duration::from_millis(500);

/// A watchdog that is fed, as soon as there is one.
#[derive(Clone, Debug, Default)]
pub struct Watchdog {
    care: Arc<AtomicU8>,
}

/// What the thread does, as an atomic holds it.
const FEED: u8 = 0;
const SWITCH_OFF: u8 = 1;
const LEAVE: u8 = 2;

impl Watchdog {
    /// Takes the watchdog once its driver has shown it, which may be one loaded later, and feeds it from a thread of
    /// its own.
    pub fn start() -> Self {
        Self::start_at(DEVICE.into(), TICK)
    }

    fn start_at(path: PathBuf, tick: Duration) -> Self {
        let watchdog = Self::default();
        let care = Arc::clone(&watchdog.care);
        let work = move || {
            if let Some(device) = take(&path, &care, tick) {
                feed(device, &care, tick);
            }
        };
        // Without the thread no watchdog is taken, so none bites.
        if let Err(error) = thread::Builder::new().name("watchdog".into()).spawn(work) {
            tracing::warn!(%error, "no hardware watchdog can be fed");
        }
        watchdog
    }

    /// Switches it off: the firmware takes longer to start than it allows. Takes effect within a second.
    pub fn stop(&self) {
        self.care.store(SWITCH_OFF, Ordering::Relaxed);
    }

    /// Leaves it counting, so that it resets a machine that does not end in any other way.
    pub fn leave(&self) {
        self.care.store(LEAVE, Ordering::Relaxed);
    }
}

/// Waits for the device, for as long as the run takes: most machines have one, and some have none.
fn take(path: &Path, care: &AtomicU8, tick: Duration) -> Option<File> {
    while care.load(Ordering::Relaxed) == FEED {
        if let Ok(device) = OpenOptions::new().write(true).open(path) {
            match set_timeout(&device, TIMEOUT) {
                Ok(seconds) => tracing::info!(seconds, "hardware watchdog is on"),
                Err(errno) => tracing::info!(%errno, "hardware watchdog is on, with its own time-out"),
            }
            return Some(device);
        }
        thread::sleep(tick);
    }
    None
}

fn feed(mut device: File, care: &AtomicU8, tick: Duration) {
    let mut fed: Option<Instant> = None;
    while care.load(Ordering::Relaxed) == FEED {
        if fed.is_none_or(|at| at.elapsed() >= INTERVAL) {
            // A failed write shows by a reset, which is what the watchdog is for.
            let _ = device.write_all(b"\0");
            fed = Some(Instant::now());
        }
        thread::sleep(tick);
    }
    if care.load(Ordering::Relaxed) == SWITCH_OFF {
        // The magic close: without it the driver keeps counting.
        let _ = device.write_all(b"V");
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Looks until the file holds these bytes.
    fn await_bytes(path: &Path, bytes: &[u8]) {
        let start = Instant::now();
        while fs::read(path).unwrap() != bytes {
            assert!(start.elapsed() < Duration::from_secs(30), "{:?}", fs::read(path));
            thread::sleep(Duration::from_millis(2));
        }
    }

    #[test]
    fn a_watchdog_whose_driver_comes_later_is_fed_and_switched_off_in_the_end() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("watchdog");
        let watchdog = Watchdog::start_at(path.clone(), Duration::from_millis(2));
        thread::sleep(Duration::from_millis(10));
        fs::write(&path, "").unwrap();
        await_bytes(&path, b"\0");
        watchdog.stop();
        await_bytes(&path, b"\0V");
    }

    #[test]
    fn a_watchdog_that_is_left_is_not_switched_off() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("watchdog");
        fs::write(&path, "").unwrap();
        let watchdog = Watchdog::start_at(path.clone(), Duration::from_millis(2));
        await_bytes(&path, b"\0");
        watchdog.leave();
        // The thread is the only other owner, and has ended without a word once it is gone.
        while Arc::strong_count(&watchdog.care) > 1 {
            thread::yield_now();
        }
        assert_eq!(fs::read(&path).unwrap(), b"\0");
    }
}
