//! Runs cases side by side, each in namespaces of its own, and says how they ended.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::cases::{CASES, Case, directory};
use crate::lab::sandboxed;
use crate::{secrets, tool};

/// Lines of each log that are shown when a case fails.
const TAIL: usize = 30;

/// Where things are.
#[derive(Clone, Debug)]
pub struct Places {
    /// Where images were built and cases write.
    pub build: PathBuf,
    /// The inspection image.
    pub inspection: PathBuf,
}

/// Runs `cases`, at most `jobs` at a time; prints one line for each and the count at the end.
///
/// # Errors
/// When any of them failed.
pub fn run(cases: &[&'static Case], jobs: usize, places: &Places) -> Result<()> {
    let queue: Mutex<VecDeque<&Case>> = Mutex::new(cases.iter().copied().collect());
    let failed = Mutex::new(Vec::new());
    println!("running {} end-to-end cases, {jobs} at a time", cases.len());
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                loop {
                    // Taken in a statement of its own, so that the lock is not held while the case runs.
                    let next = lock(&queue).pop_front();
                    let Some(case) = next else { return };
                    if !one(case, places) {
                        lock(&failed).push(case.name);
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    println!("\n{} passed, {} failed", cases.len() - failed.len(), failed.len());
    if failed.is_empty() { Ok(()) } else { bail!("failed: {}", failed.join(", ")) }
}

/// Every case there is.
pub fn all() -> Vec<&'static Case> {
    CASES.iter().collect()
}

fn one(case: &Case, places: &Places) -> bool {
    let started = Instant::now();
    let dir = directory(&places.build, case.name);
    let first = dir.with_file_name(format!("{}.first", case.name));
    let mut outcome = clear(&first).and_then(|()| in_sandbox(case, places));
    if outcome.is_err() && starved(&dir) {
        println!(
            "again   {:<18} the emulator was starved: a guest's timer did not tick in time; its logs are in {}",
            case.name,
            first.display()
        );
        let kept = fs::rename(&dir, &first).with_context(|| format!("keep {}", dir.display()));
        outcome = kept.and_then(|()| in_sandbox(case, places));
    }
    let seconds = started.elapsed().as_secs();
    match outcome {
        Ok(()) => {
            println!("ok      {:<18} {seconds:>4} s  {}", case.name, case.shows);
            true
        }
        Err(error) => {
            let mut text = format!("FAILED  {:<18} {seconds:>4} s  {}\n{error:#}\n", case.name, case.shows);
            text.push_str(&tails(&dir));
            println!("{text}");
            false
        }
    }
}

/// Removes what an earlier run left.
fn clear(dir: &Path) -> Result<()> {
    if dir.exists() {
        fs::remove_dir_all(dir).with_context(|| format!("clear {}", dir.display()))?;
    }
    Ok(())
}

fn in_sandbox(case: &Case, places: &Places) -> Result<()> {
    let dir = directory(&places.build, case.name);
    clear(&dir)?;
    fs::create_dir_all(&dir).with_context(|| format!("create {}", dir.display()))?;
    let output = File::create(dir.join("case.log"))?;
    let mut command = sandboxed(["--build-dir".as_ref(), places.build.as_os_str()])?;
    command.arg("--inspection").arg(&places.inspection).args(["case", case.name]);
    command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
    // Its own limit ends a case; this one ends a case that cannot end itself.
    let status = wait(&mut command, case.limit + Duration::from_secs(60))?;
    if status { Ok(()) } else { bail!("the case failed; its logs are in {}", dir.display()) }
}

fn wait(command: &mut Command, limit: Duration) -> Result<bool> {
    let mut child = command.spawn().context("start the case; it needs root for network namespaces")?;
    let deadline = Instant::now() + limit;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status.success());
        }
        if Instant::now() > deadline {
            child.kill().ok();
            child.wait().ok();
            bail!("the case did not end within {} s", limit.as_secs());
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// What a guest kernel says when the emulator gets no processor time for so long that timers seem broken.
const STARVED: &[u8] = b"IO-APIC + timer doesn't work";

/// Whether a guest of the case died of that; once it is no fault of what is tested, twice it is a failure.
fn starved(dir: &Path) -> bool {
    let logs = secrets::logs(dir).unwrap_or_default();
    let says = |log: &PathBuf| fs::read(log).is_ok_and(|b| b.windows(STARVED.len()).any(|w| w == STARVED));
    logs.iter().any(says)
}

/// The last lines of every log of a case, the case's own first.
fn tails(dir: &Path) -> String {
    let mut logs = secrets::logs(dir).unwrap_or_default();
    logs.sort_by_key(|log| !log.ends_with("case.log"));
    let mut text = String::new();
    for log in logs {
        let bytes = fs::read(&log).unwrap_or_default();
        let printable = String::from_utf8_lossy(&bytes).replace(|c: char| c.is_control() && c != '\n', "");
        text.push_str(&format!("--- {}\n{}\n", log.display(), tool::tail(&printable, TAIL)));
    }
    text
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
