//! Running other programs: what they said is in the error when they fail.

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use anyhow::{Context as _, Result, bail};

/// Runs a program to its end.
///
/// # Errors
/// When it cannot be started or does not end with success.
pub fn run(command: &mut Command) -> Result<()> {
    bytes(command).map(drop)
}

/// Runs a program and returns what it printed.
///
/// # Errors
/// As [`run`], and when the output is not UTF-8.
pub fn stdout(command: &mut Command) -> Result<String> {
    String::from_utf8(bytes(command)?).context("the output is not UTF-8")
}

/// Runs a program and returns what it printed, as bytes.
///
/// # Errors
/// As [`run`].
pub fn bytes(command: &mut Command) -> Result<Vec<u8>> {
    let shown = format!("{command:?}");
    let output = command.stdin(Stdio::null()).output().with_context(|| starting(&shown))?;
    checked(&shown, output)
}

/// Runs a program that reads `input`.
///
/// # Errors
/// As [`run`].
pub fn with_input(command: &mut Command, input: &str) -> Result<()> {
    let shown = format!("{command:?}");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().with_context(|| starting(&shown))?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(input.as_bytes()).with_context(|| format!("feed {shown}"))?;
    }
    checked(&shown, child.wait_with_output().with_context(|| format!("wait for {shown}"))?).map(drop)
}

fn starting(shown: &str) -> String {
    format!("start {shown}; `make deps` installs what the lab needs")
}

fn checked(shown: &str, output: Output) -> Result<Vec<u8>> {
    if output.status.success() {
        return Ok(output.stdout);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = if said.trim().is_empty() { String::from_utf8_lossy(&output.stdout) } else { said };
    bail!("{shown} ended with {}: {}", output.status, tail(&said, 15))
}

/// The last lines of a text.
pub fn tail(text: &str, lines: usize) -> String {
    let all: Vec<&str> = text.lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}
