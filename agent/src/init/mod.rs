//! Makes a bare kernel usable: mounts, console, drivers, watchdog; and ends the run.

mod console;
pub mod drivers;
mod end;
pub mod modules;
mod mounts;
mod process;
mod watchdog;

use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use zeroize::Zeroizing;

pub use console::Journal;
pub use end::{Ending, end};
pub use watchdog::Watchdog;

/// Room for any kernel's command line, so that reading one leaves no copy behind.
const CMDLINE_ROOM: usize = 8 << 10;

/// The kernel command line. Holds the token: never shown, and zeroized on drop.
#[derive(Clone)]
pub struct Cmdline(Zeroizing<String>);

impl Cmdline {
    /// What is in the file; empty when that cannot be read.
    fn read(path: &Path) -> Self {
        let mut text = Zeroizing::new(String::with_capacity(CMDLINE_ROOM));
        // Without one the run fails, and says what is missing.
        let _ = File::open(path).and_then(|mut file| file.read_to_string(&mut text));
        Self(text)
    }

    /// The text. Never log it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Cmdline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cmdline({} bytes)", self.0.len())
    }
}

/// What PID 1 knows once it stands on its feet.
#[derive(Debug)]
pub struct Init {
    /// The kernel command line.
    pub cmdline: Cmdline,
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
    let cmdline = Cmdline::read(Path::new("/proc/cmdline"));
    let debug = end::is_debug(cmdline.expose());
    let journal = console::start(debug);
    end::log_panics();
    tracing::info!(version = env!("CARGO_PKG_VERSION"), kernel = kernel_release(), "farrier agent");
    for failure in failures {
        tracing::warn!("{failure}");
    }
    process::prepare();
    let on_failure = Ending::of_failure(cmdline.expose());
    Init { on_failure, debug, cmdline, journal, watchdog: Watchdog::start() }
}

/// Version of the running kernel, which names its directory of modules.
pub fn kernel_release() -> String {
    nix::sys::utsname::uname().map(|u| u.release().to_string_lossy().into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_is_read_whole_and_not_shown() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("cmdline");
        std::fs::write(&path, "quiet beskar7.token=SECRET\n").unwrap();
        let cmdline = Cmdline::read(&path);
        assert_eq!(cmdline.expose(), "quiet beskar7.token=SECRET\n");
        assert_eq!(format!("{cmdline:?}"), "Cmdline(27 bytes)");
        assert_eq!(Cmdline::read(dir.path()).expose(), "");
    }
}
