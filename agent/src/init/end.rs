//! How a run ends: with a restart or power off, never by parking.

use std::fs;
use std::iter;
use std::panic;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use farrier_shared::contract::bootarg::BootArg;
use farrier_shared::contract::options::{AgentOption, OnFailure};
use nix::sys::reboot::{RebootMode, reboot, set_cad_enabled};

use super::{Init, Watchdog};

/// How long dirty pages may take to reach a disk that may be dying.
const SYNC_WAIT: Duration = Duration::from_secs(60);
/// How long a person has to read the console before it goes dark.
const READING_TIME: Duration = Duration::from_secs(10);
/// The same with `beskar7.debug`. Ctrl-Alt-Del ends it sooner.
const DEBUG_READING_TIME: Duration = Duration::from_secs(15 * 60);
/// Between two tries to make the kernel obey: a RAID controller may take a minute to empty its cache.
const INSIST: Duration = Duration::from_secs(120);
/// The key that restarts the machine at once.
const RESTART: &str = "b";

/// What becomes of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Into the installed system, or whatever the firmware finds.
    Reboot,
    /// Off, so that it neither loops nor boots what was not verified.
    PowerOff,
}

impl Ending {
    /// What a failure leads to: as the command line says, off when it says nothing.
    pub fn of_failure(cmdline: &str) -> Self {
        // Needed even where the rest of the line is no run's; the run itself refuses what is not a value.
        let asked = AgentOption::OnFailure.last_in(cmdline).and_then(|value| value.parse().ok());
        match asked.unwrap_or_default() {
            OnFailure::Reboot => Self::Reboot,
            OnFailure::PowerOff => Self::PowerOff,
        }
    }
}

/// Whether the command line asks for a fuller log and time to read it.
pub(super) fn is_debug(cmdline: &str) -> bool {
    let mut words = cmdline.split_ascii_whitespace().filter_map(|word| word.split_once('='));
    let last = words.rfind(|(key, _)| *key == BootArg::Debug.key());
    last.is_some_and(|(_, value)| value.eq_ignore_ascii_case("true"))
}

/// Logs a panic with its place. What it says beyond that stays on the console.
pub(super) fn log_panics() {
    panic::set_hook(Box::new(|info| {
        let place = info.location().map_or_else(|| "an unknown place".to_owned(), ToString::to_string);
        tracing::error!(place, "fault in the agent: {}", info.payload_as_str().unwrap_or("no message"));
    }));
}

/// Ends the run. Does not return.
pub fn end(ending: Ending, failed: bool, init: &Init) -> ! {
    tracing::info!(?ending, "the run is over");
    if failed {
        let time = if init.debug { DEBUG_READING_TIME } else { READING_TIME };
        tracing::info!("the console stays for {} s; Ctrl-Alt-Del restarts at once", time.as_secs());
        // Where the kernel keeps it from us, it does that anyway.
        let _ = set_cad_enabled(true);
        thread::sleep(time);
    }
    sync();
    if ending == Ending::Reboot {
        init.watchdog.stop();
        thread::sleep(Duration::from_secs(1));
    }
    // On a thread of its own, since the call below may hang in a driver that does not let go of its device.
    let watchdog = init.watchdog.clone();
    if let Err(error) = thread::Builder::new().spawn(move || insist(ending, &watchdog)) {
        tracing::warn!(%error, "nobody insists on the ending");
    }
    let mode = if ending == Ending::Reboot { RebootMode::RB_AUTOBOOT } else { RebootMode::RB_POWER_OFF };
    loop {
        let Err(errno) = reboot(mode);
        tracing::error!(%errno, ?ending, "the kernel refuses");
        thread::sleep(INSIST);
    }
}

/// Ends the machine in a way that needs less cooperation of the kernel, should it still run after a while.
fn insist(ending: Ending, watchdog: &Watchdog) {
    for key in keys(ending) {
        thread::sleep(INSIST);
        tracing::error!(?ending, "the kernel does not end the machine; trying another way");
        if key == RESTART {
            watchdog.leave();
        }
        let _ = fs::write("/proc/sysrq-trigger", key);
    }
}

/// What is asked of the kernel (kernel doc, sysrq), one after the other and without end. A machine that cannot be
/// switched off starts anew, from the network first, rather than hang with its power on for ever.
fn keys(ending: Ending) -> impl Iterator<Item = &'static str> {
    let offs = if ending == Ending::PowerOff { 2 } else { 0 };
    iter::repeat_n("o", offs).chain(iter::repeat(RESTART))
}

/// Writes back what is dirty, for as long as it is worth waiting.
fn sync() {
    let (done, wait) = mpsc::channel();
    let syncing = thread::Builder::new().spawn(move || {
        nix::unistd::sync();
        // Nobody waits any longer: as good.
        let _ = done.send(());
    });
    if let Err(error) = syncing {
        tracing::error!(%error, "disks not synchronised");
    } else if wait.recv_timeout(SYNC_WAIT).is_err() {
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
            ("farrier.on-failure=reboot beskar7.debug=TRUE", Ending::Reboot),
            ("beskar7.debug=true", Ending::PowerOff),
        ] {
            assert_eq!(Ending::of_failure(cmdline), ending, "{cmdline}");
        }
    }

    #[test]
    fn a_machine_that_cannot_be_switched_off_is_restarted_in_the_end() {
        assert_eq!(keys(Ending::PowerOff).take(4).collect::<Vec<_>>(), ["o", "o", "b", "b"]);
        assert_eq!(keys(Ending::Reboot).take(2).collect::<Vec<_>>(), ["b", "b"]);
    }

    #[test]
    fn debugging_is_asked_for_in_one_way() {
        for (cmdline, debug) in [
            ("", false),
            ("quiet beskar7.debug=TRUE", true),
            ("beskar7.debug=true beskar7.debug=false", false),
            ("beskar7.debug", false),
        ] {
            assert_eq!(is_debug(cmdline), debug, "{cmdline}");
        }
    }
}
