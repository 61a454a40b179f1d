//! Results as Markdown.

use std::fmt::Write as _;

use crate::Row;
use crate::measure::Cost;

/// What it ran on.
pub(crate) fn machine() -> String {
    let cpus = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| cpus.lines().find(|line| line.starts_with(name)).unwrap_or_default();
    let model = field("model name").split(": ").nth(1).unwrap_or("unknown processor");
    let sha = if field("flags").contains(" sha_ni") { "with" } else { "without" };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().unwrap_or_default();
    format!("{cores} cores of {model}, {sha} SHA instructions, load average {load} at the end.\n")
}

/// Seconds, and what they say.
pub(crate) fn times(mib: u64, rows: &[Row]) -> String {
    let mut out = format!(
        "Seconds for an image of {mib} MiB:\n\n\
         | format | target | ours | shell | curl | sha256 | decode | dd | slowest stage ÷ ours | shell ÷ ours | ours, read back too |\n\
         |---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n"
    );
    for row in rows {
        let (name, slowest) = row.slowest();
        let decode = row.decode.map_or("–".to_owned(), |cost| format!("{:.2}", cost.seconds));
        let _ = writeln!(
            out,
            "| {} | {} | {:.2} | {:.2} | {:.2} | {:.2} | {decode} | {:.2} | {:.2} ({name}) | {:.2} | {:.2} |",
            row.format.name(),
            row.target,
            row.ours.seconds,
            row.shell.seconds,
            row.fetch.seconds,
            row.hash.seconds,
            row.write.seconds,
            slowest / row.ours.seconds,
            row.shell.seconds / row.ours.seconds,
            row.verified.seconds,
        );
    }
    out
}

/// Processor time and memory.
pub(crate) fn costs(rows: &[Row]) -> String {
    let mut out = "Processor seconds, and most memory of a process in MiB:\n\n\
         | format | target | ours | shell | sum of stages | ours MiB | shell MiB |\n\
         |---|---|---:|---:|---:|---:|---:|\n"
        .to_owned();
    for row in rows {
        let stages = [Some(row.fetch), Some(row.hash), row.decode, Some(row.write)];
        let sum: f64 = stages.into_iter().flatten().map(|cost| cost.cpu).sum();
        let mib = |cost: Cost| cost.memory / 1024;
        let _ = writeln!(
            out,
            "| {} | {} | {:.2} | {:.2} | {sum:.2} | {} | {} |",
            row.format.name(),
            row.target,
            row.ours.cpu,
            row.shell.cpu,
            mib(row.ours),
            mib(row.shell),
        );
    }
    out
}
