//! The hardware watchdog: resets the machine should even this program hang.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::sys::watchdog::set_timeout;

const DEVICE: &str = "/dev/watchdog";
/// Seconds without a sign of life until the machine is reset.
const TIMEOUT: i32 = 60;
const INTERVAL: Duration = Duration::from_secs(10);

/// A watchdog that is being fed.
#[derive(Clone, Debug, Default)]
pub struct Watchdog {
    stop: Arc<AtomicBool>,
}

impl Watchdog {
    /// Takes the watchdog, if there is one, and feeds it from a thread of its own.
    pub fn start() -> Self {
        let watchdog = Self::default();
        let Ok(device) = OpenOptions::new().write(true).open(DEVICE) else {
            tracing::debug!("no hardware watchdog");
            return watchdog;
        };
        match set_timeout(&device, TIMEOUT) {
            Ok(seconds) => tracing::info!(seconds, "hardware watchdog is on"),
            Err(errno) => tracing::info!(%errno, "hardware watchdog is on, with its own time-out"),
        }
        let stop = Arc::clone(&watchdog.stop);
        let fed = thread::Builder::new().name("watchdog".into()).spawn(move || feed(device, &stop));
        if let Err(error) = fed {
            tracing::warn!(%error, "the watchdog cannot be fed");
        }
        watchdog
    }

    /// Switches it off: the firmware takes longer to start than it allows. Takes effect within a second.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn feed(mut device: File, stop: &AtomicBool) {
    let tick = Duration::from_millis(500);
    let mut since = INTERVAL;
    while !stop.load(Ordering::Relaxed) {
        if since >= INTERVAL {
            // A failed write shows by a reset, which is what the watchdog is for.
            let _ = device.write_all(b"\0");
            since = Duration::ZERO;
        }
        thread::sleep(tick);
        since += tick;
    }
    // The magic close: without it the driver keeps counting.
    let _ = device.write_all(b"V");
}
