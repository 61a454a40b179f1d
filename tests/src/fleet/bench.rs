//! How fast the controller brings a fleet up, and what it costs, as the fleet grows.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use farrier_shared::contract::paths::Callback;
use tokio::time::{Instant, sleep};

use super::{Behaviour, Pace, Plan, Room, What};

/// How long each server writes. Real ones take minutes; what is measured is the controller, not disks.
const WRITING: Duration = Duration::from_secs(1);
/// How long the fleet is left alone before its idle cost is measured: as long as every BMC is asked once, which is
/// asked more that first time, as servers take new addresses when their system comes up.
const SETTLE: Duration = Duration::from_secs(300);
/// One look at the process while it idles.
const WINDOW: Duration = Duration::from_secs(60);

/// What was measured for one size.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// Hosts.
    pub hosts: usize,
    /// From the first machine asked for to the last host `Ready`.
    pub took: Duration,
    /// Processor time of the controller meanwhile.
    pub processor: Duration,
    /// Median of the agents' callbacks, retries included; without those that wait for user-data.
    pub p50: Duration,
    /// 99 of 100 callbacks were faster.
    pub p99: Duration,
    /// Resident memory once all were `Ready`, in MiB.
    pub memory_mib: f64,
    /// The most memory it ever had, in MiB.
    pub peak_mib: f64,
    /// Size of the database, in bytes.
    pub database: u64,
    /// What it costs when left alone; none when not measured.
    pub idle: Option<Idle>,
}

/// What a fleet costs that nobody wants anything of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Idle {
    /// Percent of one core while each BMC is asked for the first time since its host was installed.
    pub settling: f64,
    /// Percent of one core after that, on average.
    pub mean: f64,
    /// Percent of one core in the busiest minute.
    pub busiest: f64,
    /// Resident memory at the end, in MiB.
    pub memory_mib: f64,
}

/// Brings up `hosts` hosts in a room of their own, and then leaves them alone for `idle`.
///
/// # Errors
/// When one does not become `Ready` in time.
pub async fn measure(program: &Path, hosts: usize, idle: Duration) -> Result<Measured> {
    let dir = tempfile::tempdir()?;
    let measured = measure_in(program, dir.path(), hosts, idle).await;
    if measured.is_err() {
        // The error names the controller's log, so that stays.
        let _ = dir.keep();
    }
    measured
}

async fn measure_in(program: &Path, dir: &Path, hosts: usize, idle: Duration) -> Result<Measured> {
    let behaviour = |_| Behaviour::Writes(WRITING);
    let plan = Plan { servers: hosts, behaviour: &behaviour, pace: Pace::Real, flags: &[] };
    let room = Room::open(program, dir, &plan).await?;
    let limit = Duration::from_secs(300 + hosts as u64 / 4);
    room.add_hosts().await?;
    // A list is work for the controller: the more hosts, the less often.
    let every = Duration::from_millis(200 + hosts as u64 / 5);
    room.until(hosts, limit, every, |host| host["status"]["state"] == "Available").await?;

    let before = room.serve.cost()?;
    let begun = Instant::now();
    room.add_machines().await?;
    // Told by the servers: asking the controller all the time would be a cost of its own.
    let done = What::Acknowledged(Callback::Provisioned);
    while room.ledger.count(&done) < hosts {
        let told = room.ledger.count(&done);
        ensure!(
            begun.elapsed() < limit,
            "{told} of {hosts} installed after {limit:?}; {:?}",
            room.serve.log()
        );
        sleep(Duration::from_millis(200)).await;
    }
    room.until(hosts, limit, every, |host| host["status"]["state"] == "Ready").await?;
    let took = begun.elapsed();
    let after = room.serve.cost()?;
    let calls = room.ledger.calls();
    let percentile = |percent: usize| calls.get((calls.len() * percent / 100).min(calls.len() - 1)).copied();
    ensure!(calls.len() >= hosts * 3, "only {} callbacks of {hosts} hosts", calls.len());
    let idle = if idle.is_zero() { None } else { Some(rest(&room, idle).await?) };
    Ok(Measured {
        hosts,
        took,
        processor: after.processor.saturating_sub(before.processor),
        p50: percentile(50).context("no callbacks")?,
        p99: percentile(99).context("no callbacks")?,
        memory_mib: after.memory_mib,
        peak_mib: after.peak_mib,
        database: room.serve.database_bytes()?,
        idle,
    })
}

async fn rest(room: &Room, time: Duration) -> Result<Idle> {
    let (installed, begun) = (room.serve.cost()?.processor, Instant::now());
    // No longer than what follows, for a quick look.
    sleep(SETTLE.min(time)).await;
    let first = room.serve.cost()?.processor;
    let settling = percent(first.saturating_sub(installed), begun.elapsed());
    let begun = Instant::now();
    let (mut last, mut busiest) = (first, 0.0_f64);
    while begun.elapsed() < time {
        let window = Instant::now();
        sleep(WINDOW.min(time)).await;
        let now = room.serve.cost()?.processor;
        busiest = busiest.max(percent(now.saturating_sub(last), window.elapsed()));
        last = now;
    }
    let mean = percent(last.saturating_sub(first), begun.elapsed());
    Ok(Idle { settling, mean, busiest, memory_mib: room.serve.cost()?.memory_mib })
}

fn percent(part: Duration, whole: Duration) -> f64 {
    100.0 * part.as_secs_f64() / whole.as_secs_f64()
}

/// The measurements as a Markdown table, and how each grows against the first line.
pub fn table(all: &[Measured]) -> String {
    let mut text = String::from(
        "| hosts | claim to Ready | hosts/s | controller CPU per host | callback p50 | callback p99 | memory, Ready | peak memory | database | settling CPU | idle CPU, mean (busiest minute) | memory, idle |\n\
         |---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n",
    );
    let count = |m: &Measured| f64::from(u32::try_from(m.hosts).unwrap_or(u32::MAX));
    let each = |m: &Measured| m.processor.as_secs_f64() * 1000.0 / count(m);
    let rate = |m: &Measured| count(m) / m.took.as_secs_f64();
    for m in all {
        let idle = m.idle.map_or("not measured | |".to_owned(), |i| {
            format!("{:.1} % | {:.1} % ({:.1} %) | {:.0} MiB", i.settling, i.mean, i.busiest, i.memory_mib)
        });
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "| {} | {:.1} s | {:.1} | {:.1} ms | {:.1} ms | {:.1} ms | {:.0} MiB | {:.0} MiB | {:.1} MiB | {idle} |",
            m.hosts,
            m.took.as_secs_f64(),
            rate(m),
            each(m),
            m.p50.as_secs_f64() * 1000.0,
            m.p99.as_secs_f64() * 1000.0,
            m.memory_mib,
            m.peak_mib,
            m.database as f64 / f64::from(1 << 20),
        );
    }
    let Some(first) = all.first() else { return text };
    text.push_str(
        "\n| hosts, relative | time | CPU per host | p50 | p99 | memory | database |\n|---:|---:|---:|---:|---:|---:|---:|\n",
    );
    for m in all {
        let ratio = |value: f64, of: f64| value / of;
        let _ = writeln!(
            text,
            "| ×{:.0} | ×{:.1} | ×{:.2} | ×{:.2} | ×{:.2} | ×{:.2} | ×{:.1} |",
            ratio(count(m), count(first)),
            ratio(m.took.as_secs_f64(), first.took.as_secs_f64()),
            ratio(each(m), each(first)),
            ratio(m.p50.as_secs_f64(), first.p50.as_secs_f64()),
            ratio(m.p99.as_secs_f64(), first.p99.as_secs_f64()),
            ratio(m.memory_mib, first.memory_mib),
            ratio(m.database as f64, first.database as f64),
        );
    }
    text
}
