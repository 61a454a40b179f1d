//! Running other programs, each with a deadline, so that no build hangs on a network that swallows packets.

use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// For programs that only read local files.
pub const SHORT: Duration = Duration::from_secs(60);
/// For downloading or unpacking a kernel.
pub const DOWNLOAD: Duration = Duration::from_secs(900);

/// Why a program gave no result. The text names the whole command.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// It could not be started: usually it is not installed.
    #[error("cannot start `{command}`: {source}")]
    Start {
        /// The command line.
        command: String,
        /// Why.
        source: std::io::Error,
    },
    /// It ended with another status than 0.
    #[error("`{command}` failed with {status}: {stderr}")]
    Failed {
        /// The command line.
        command: String,
        /// How it ended.
        status: std::process::ExitStatus,
        /// The end of what it said.
        stderr: String,
    },
    /// It did not end in time and was killed.
    #[error("`{command}` did not end within {} s and was stopped", deadline.as_secs())]
    TimedOut {
        /// The command line.
        command: String,
        /// The time it had.
        deadline: Duration,
    },
}

/// A program to run, with its deadline.
#[derive(Debug)]
pub struct Command {
    inner: std::process::Command,
    deadline: Duration,
}

impl Command {
    /// `program` (a path, or a name searched in PATH), to end within `deadline`. Messages are asked for in
    /// plain English, since some are read.
    #[must_use]
    pub fn new(program: impl AsRef<OsStr>, deadline: Duration) -> Self {
        let mut inner = std::process::Command::new(program);
        inner.env("LC_ALL", "C").stdin(Stdio::null());
        Command { inner, deadline }
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.inner.arg(arg);
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.inner.args(args);
        self
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn env(mut self, key: &str, value: impl AsRef<OsStr>) -> Self {
        self.inner.env(key, value);
        self
    }

    /// Removes an environment variable.
    #[must_use]
    pub fn env_remove(mut self, key: impl AsRef<OsStr>) -> Self {
        self.inner.env_remove(key);
        self
    }

    /// Runs in this directory.
    #[must_use]
    pub fn current_dir(mut self, directory: &Path) -> Self {
        self.inner.current_dir(directory);
        self
    }

    /// Runs it and returns its standard output.
    ///
    /// # Errors
    /// When it cannot start, fails or takes too long.
    pub fn output(mut self) -> Result<Vec<u8>, CommandError> {
        // A group of its own can be killed whole: what it started holds our pipes.
        self.inner.stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        self.run()
    }

    /// Runs it, its messages going where ours go: for compilers, whose progress people want to see, and
    /// which an interrupt at the terminal stops together with us.
    ///
    /// # Errors
    /// When it cannot start, fails or takes too long.
    pub fn watched(mut self) -> Result<(), CommandError> {
        self.inner.stdout(Stdio::null()).stderr(Stdio::inherit());
        self.run().map(drop)
    }

    fn run(mut self) -> Result<Vec<u8>, CommandError> {
        let command = self.text();
        let mut child =
            self.inner.spawn().map_err(|source| CommandError::Start { command: command.clone(), source })?;
        let stdout = collect(child.stdout.take());
        let stderr = collect(child.stderr.take());
        let status = wait(&mut child, self.deadline)
            .ok_or(CommandError::TimedOut { command: command.clone(), deadline: self.deadline })?;
        let stdout = stdout.recv().unwrap_or_default();
        if status.success() {
            return Ok(stdout);
        }
        let stderr = last_lines(&String::from_utf8_lossy(&stderr.recv().unwrap_or_default()));
        Err(CommandError::Failed { command, status, stderr })
    }

    fn text(&self) -> String {
        let words: Vec<OsString> = std::iter::once(self.inner.get_program())
            .chain(self.inner.get_args())
            .map(OsStr::to_owned)
            .collect();
        words.join(OsStr::new(" ")).to_string_lossy().into_owned()
    }
}

/// Reads a pipe to its end on a thread of its own, so that no program blocks on a full pipe.
fn collect(pipe: Option<impl Read + Send + 'static>) -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // A read error ends the text early; the exit status still tells how the program fared.
            let _ = pipe.read_to_end(&mut bytes);
        }
        let _ = sender.send(bytes);
    });
    receiver
}

/// The child's status, or `None` after killing it at the deadline, with its process group if it leads one.
fn wait(child: &mut Child, deadline: Duration) -> Option<std::process::ExitStatus> {
    let end = Instant::now() + deadline;
    let mut pause = Duration::from_millis(1);
    loop {
        if let Ok(Some(status)) = child.try_wait() {
            return Some(status);
        }
        if Instant::now() >= end {
            break;
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(100));
    }
    if let Ok(pid) = i32::try_from(child.id()) {
        // No such group when it runs in ours, and then only it is killed.
        let _ = nix::sys::signal::killpg(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGKILL);
    }
    let _ = child.kill();
    let _ = child.wait();
    None
}

/// Enough of a failing program's messages to act on.
fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(10)..].join("\n")
}

/// Whether `program` is an executable file, or is found in PATH. Returns its path.
#[must_use]
pub fn find_program(program: &str) -> Option<std::path::PathBuf> {
    use std::os::unix::fs::PermissionsExt;
    let executable = |path: &Path| {
        std::fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    let search = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&search).map(|directory| directory.join(program)).find(|path| executable(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_returned_and_failures_tell_what_was_said() {
        let shell = |script: &str| Command::new("sh", SHORT).args(["-c", script]).output();
        assert_eq!(shell("echo fine").expect("runs"), b"fine\n");
        let error = shell("echo no space left >&2; exit 3").expect_err("fails").to_string();
        assert!(error.contains("no space left") && error.contains('3'), "{error}");
    }

    #[test]
    fn a_missing_program_is_named() {
        let error = Command::new("no-such-program", SHORT).arg("-x").output().expect_err("fails").to_string();
        assert!(error.contains("no-such-program -x"), "{error}");
    }

    #[test]
    fn a_program_past_its_deadline_is_killed_with_its_children() {
        let begun = Instant::now();
        let error = Command::new("sh", Duration::from_millis(50)).args(["-c", "sleep 60 & wait"]).output();
        assert!(matches!(error, Err(CommandError::TimedOut { .. })), "{error:?}");
        assert!(begun.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn much_output_on_both_pipes_does_not_block() {
        let script = "head -c 300000 /dev/zero >&2; head -c 300000 /dev/zero";
        assert_eq!(Command::new("sh", SHORT).args(["-c", script]).output().expect("runs").len(), 300_000);
    }
}
