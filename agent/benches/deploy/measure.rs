//! What a command costs. It runs below a process that runs nothing else, whose children's account is then its alone.

use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    pub(crate) seconds: f64,
    /// Processor time of all its processes, in seconds.
    pub(crate) cpu: f64,
    /// Most memory any one of its processes had, in KiB.
    pub(crate) memory: i64,
}

impl Cost {
    pub(crate) fn faster(self, other: Self) -> Self {
        if other.seconds < self.seconds { other } else { self }
    }
}

/// Runs it and tells.
pub(crate) fn measure(command: &[String]) -> Result<Cost> {
    let out = Command::new(std::env::current_exe()?)
        .args(["measure", "--"])
        .args(command)
        .stderr(Stdio::inherit())
        .output()?;
    ensure!(out.status.success(), "{}", out.status);
    let text = String::from_utf8(out.stdout)?;
    let mut fields = text.split_whitespace();
    let mut next = || fields.next().context("a field");
    Ok(Cost { seconds: next()?.parse()?, cpu: next()?.parse()?, memory: next()?.parse()? })
}

/// The process between.
pub(crate) fn child(command: &[String]) -> Result<()> {
    let (program, args) = command.split_first().context("a command")?;
    let start = Instant::now();
    let status = Command::new(program).args(args).stdout(Stdio::null()).status()?;
    let seconds = start.elapsed().as_secs_f64();
    ensure!(status.success(), "{program}: {status}");
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let cpu = as_seconds(usage.user_time()) + as_seconds(usage.system_time());
    println!("{seconds} {cpu} {}", usage.max_rss());
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "seconds of a benchmark")]
fn as_seconds(time: TimeVal) -> f64 {
    time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6
}
