//! Namespaces: a process that has its own network and process table leaves nothing behind.

use std::ffi::OsStr;
use std::process::Command;

use anyhow::{Context as _, Result};

/// This program again, with `args`, in a network, mount and process namespace of its own. When it ends, even by
/// SIGKILL, the kernel ends all its children and removes its bridges and taps; when the thread that
/// started it ends, it ends.
///
/// # Errors
/// When the program's own path is unknown.
pub fn command<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Result<Command> {
    let program = std::env::current_exe().context("find this program")?;
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--", "unshare"]);
    command.args(["--net", "--pid", "--fork", "--kill-child", "--mount-proc", "--"]).arg(program).args(args);
    Ok(command)
}
