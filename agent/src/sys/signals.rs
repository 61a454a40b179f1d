//! Signals as PID 1 wants them.

use nix::sys::signal::{SigHandler, Signal, signal};

/// Lets the kernel reap children by itself, and turns a broken pipe into an error of the write.
pub fn ignore_children_and_pipes() {
    for which in [Signal::SIGCHLD, Signal::SIGPIPE] {
        // SAFETY: SIG_IGN runs no code of ours, so no handler can break async-signal safety.
        if let Err(errno) = unsafe { signal(which, SigHandler::SigIgn) } {
            tracing::warn!(signal = which.as_str(), %errno, "signal disposition not set");
        }
    }
}
