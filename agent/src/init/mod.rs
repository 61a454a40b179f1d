//! Makes a bare kernel usable: mounts, console, drivers, watchdog; and ends the run.

mod console;
pub mod drivers;
mod end;
pub mod modules;
mod mounts;
mod process;
mod watchdog;

use std::fs;

pub use console::Journal;
pub use end::{Ending, end};
pub use watchdog::Watchdog;

/// What PID 1 knows once it stands on its feet.
#[derive(Debug)]
pub struct Init {
    /// The kernel command line. Holds the token: never log it.
    pub cmdline: String,
    /// What a failure leads to.
    pub on_failure: Ending,
    /// Whether a person wants to read the console.
    pub debug: bool,
    /// The end of the log.
    pub journal: Journal,
    /// The watchdog, fed.
    pub watchdog: Watchdog,
}

/// Mounts, starts the log, prepares the process. What fails is logged, not fatal.
pub fn start() -> Init {
    let failures = mounts::mount_all();
    let cmdline = fs::read_to_string("/proc/cmdline").unwrap_or_default();
    let debug = end::is_debug(&cmdline);
    let journal = console::start(debug);
    end::log_panics();
    tracing::info!(version = env!("CARGO_PKG_VERSION"), kernel = kernel_release(), "farrier agent");
    for failure in failures {
        tracing::warn!("{failure}");
    }
    process::prepare();
    Init { on_failure: Ending::of_failure(&cmdline), debug, cmdline, journal, watchdog: Watchdog::start() }
}

/// Version of the running kernel, which names its directory of modules.
pub fn kernel_release() -> String {
    nix::sys::utsname::uname().map(|u| u.release().to_string_lossy().into_owned()).unwrap_or_default()
}
