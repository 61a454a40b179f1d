//! How a run ends: never by parking, but where a person asked for it.

use std::fs;
use std::panic;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use nix::sys::reboot::{RebootMode, reboot};

use super::Watchdog;

/// How long dirty pages may take to reach a disk that may be dying.
const SYNC_WAIT: Duration = Duration::from_secs(60);
/// How long a person has to read the console before it goes dark.
const READING_TIME: Duration = Duration::from_secs(10);
/// Between two tries to make the kernel obey.
const INSIST: Duration = Duration::from_secs(30);

/// What becomes of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Into the installed system, or whatever the firmware finds.
    Reboot,
    /// Off, so that it neither loops nor boots what was not verified.
    PowerOff,
    /// Stays as it is, for a person at the console.
    Stay,
}

impl Ending {
    /// What a failure leads to: as the command line says, off when it says nothing.
    pub fn of_failure(cmdline: &str) -> Self {
        let mut ending = Self::PowerOff;
        let mut debug = false;
        for word in cmdline.split_ascii_whitespace() {
            match word.split_once('=') {
                Some(("farrier.on-failure", "reboot")) => ending = Self::Reboot,
                Some(("farrier.on-failure", "poweroff")) => ending = Self::PowerOff,
                Some(("beskar7.debug", value)) => debug = value.eq_ignore_ascii_case("true"),
                _ => {}
            }
        }
        if debug { Self::Stay } else { ending }
    }
}

/// Logs a panic with its place. What it says beyond that stays on the console.
pub(super) fn log_panics() {
    panic::set_hook(Box::new(|info| {
        let place = info.location().map_or_else(|| "an unknown place".to_owned(), ToString::to_string);
        tracing::error!(place, "fault in the agent: {}", info.payload_as_str().unwrap_or("no message"));
    }));
}

/// Ends the run. Does not return.
pub fn end(ending: Ending, failed: bool, watchdog: &Watchdog) -> ! {
    if ending == Ending::Stay {
        tracing::warn!("beskar7.debug is set: the machine stays as it is");
        loop {
            thread::sleep(Duration::from_secs(3600));
        }
    }
    tracing::info!(?ending, "the run is over");
    if failed {
        thread::sleep(READING_TIME);
    }
    sync();
    watchdog.stop();
    thread::sleep(Duration::from_secs(1));
    let mode = if ending == Ending::Reboot { RebootMode::RB_AUTOBOOT } else { RebootMode::RB_POWER_OFF };
    loop {
        let Err(errno) = reboot(mode);
        tracing::error!(%errno, ?ending, "the kernel refuses; trying another way");
        // Needs no cooperation of the rest of the kernel.
        let key = if ending == Ending::Reboot { "b" } else { "o" };
        let _ = fs::write("/proc/sysrq-trigger", key);
        thread::sleep(INSIST);
    }
}

/// Writes back what is dirty, for as long as it is worth waiting.
fn sync() {
    let (done, wait) = mpsc::channel();
    thread::spawn(move || {
        nix::unistd::sync();
        // Nobody waits any longer: as good.
        let _ = done.send(());
    });
    if wait.recv_timeout(SYNC_WAIT).is_err() {
        tracing::error!("disks did not take everything in {SYNC_WAIT:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_powers_off_unless_told_otherwise() {
        for (cmdline, ending) in [
            ("", Ending::PowerOff),
            ("quiet farrier.on-failure=reboot", Ending::Reboot),
            ("farrier.on-failure=reboot farrier.on-failure=poweroff", Ending::PowerOff),
            ("farrier.on-failure=dance", Ending::PowerOff),
            ("farrier.on-failure=reboot beskar7.debug=TRUE", Ending::Stay),
            ("beskar7.debug=false", Ending::PowerOff),
        ] {
            assert_eq!(Ending::of_failure(cmdline), ending, "{cmdline}");
        }
    }
}
