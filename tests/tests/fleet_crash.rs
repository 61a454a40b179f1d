//! A controller that is killed again and again, with two hundred servers at work: nothing acknowledged is lost,
//! and no server is installed twice.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use farrier_shared::contract::paths::Callback;
use farrier_tests::fleet::{Behaviour, Chance, Pace, Plan, Room, What, name};
use serde_json::Value;
use tokio::time::{Instant, sleep};

const SERVERS: usize = 200;
const KILLS: usize = 50;
/// Shortest and longest life of a controller; the shortest ends while it starts.
const LIFE: std::ops::Range<u64> = 50..2000;
/// From the last kill to all servers installed.
const RECOVERY: Duration = Duration::from_secs(150);

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_servers_outlive_fifty_killed_controllers() -> Result<()> {
    rustls::crypto::ring::default_provider().install_default().ok();
    let dir = tempfile::tempdir()?;
    let outcome = outlive(dir.path()).await;
    if outcome.is_err() {
        println!("the controller's log is {}", dir.keep().join("controller.log").display());
    }
    outcome
}

async fn outlive(dir: &Path) -> Result<()> {
    // Instants are chance; what the controller does at them is not the seed's to repeat.
    let mut chance = Chance::seeded();

    // Long enough in all that there is work left at every kill.
    let writing: Vec<_> = (0..SERVERS).map(|_| Duration::from_millis(chance.within(500..40_000))).collect();
    let program = Path::new(env!("CARGO_BIN_EXE_farrier-under-test"));
    let behaviour = |server: usize| Behaviour::Writes(writing[server]);
    let plan = Plan { servers: SERVERS, behaviour: &behaviour, pace: Pace::Hurried, flags: &[] };
    let mut room = Room::open(program, dir, &plan).await?;
    room.add_hosts().await?;
    room.add_machines().await?;

    let begun = Instant::now();
    let mut at_work = 0;
    for _ in 0..KILLS {
        sleep(Duration::from_millis(chance.within(LIFE))).await;
        room.serve.kill().await?;
        at_work += usize::from(installed(&room) < SERVERS);
        room.serve.spawn()?;
    }
    println!("{KILLS} kills in {:.1?}, {at_work} of them with servers at work", begun.elapsed());
    ensure!(at_work > KILLS / 2, "only {at_work} of {KILLS} kills came while there was work");

    room.serve.answers().await?;
    let ready = |host: &Value| host["status"]["state"] == "Ready";
    let hosts = room.until(SERVERS, RECOVERY, Duration::from_secs(1), ready).await?;
    println!("all ready {:.1?} after the first kill was due", begun.elapsed());
    for (server, host) in hosts.iter().enumerate() {
        let history = room.serve.admin()?.history(&name(server)).await?;
        judge(&room, server, host, &history).with_context(|| name(server))?;
    }
    let again = room.ledger.count(&What::Wrote).saturating_sub(SERVERS);
    println!(
        "{again} disks were written before by a run that its controller had not noted when it was killed"
    );
    machines_are_provisioned(&room).await
}

/// Servers whose success was acknowledged.
fn installed(room: &Room) -> usize {
    room.ledger.count(&What::Acknowledged(Callback::Provisioned))
}

/// One server's life against what the controller keeps of it.
fn judge(room: &Room, server: usize, host: &Value, history: &[Value]) -> Result<()> {
    let life = room.ledger.of(server);
    let story = || format!("{life:#?}\n{history:#?}");
    ensure!(host["metadata"]["name"] == name(server), "the list is not sorted: {host}");

    // Installed once, by the run the controller believes in, and left alone from then on.
    let done: Vec<_> = life
        .iter()
        .enumerate()
        .filter(|(_, e)| e.what == What::Acknowledged(Callback::Provisioned))
        .collect();
    let [(at, done)] = done.as_slice() else { anyhow::bail!("{} times installed: {}", done.len(), story()) };
    let disturbed = life[at + 1..].iter().any(|e| e.what != What::Acknowledged(Callback::Provisioned));
    ensure!(!disturbed, "booted or written again after its success was acknowledged: {}", story());
    ensure!(
        host["status"]["run"].as_str() == done.run.as_deref(),
        "ready by another run: {} {}",
        host,
        story()
    );
    let wrote: Vec<_> = life.iter().filter(|e| e.what == What::Wrote).collect();
    let by_it = wrote.iter().filter(|e| e.run == done.run).count();
    ensure!(by_it == 1, "written {by_it} times by the run that counts: {}", story());
    // A disk may only be written again for a run that the controller did not know of: it was killed after it had
    // booted the server and before it had noted that it had.
    for earlier in wrote.iter().filter(|e| e.run != done.run) {
        let told: Vec<_> = history.iter().filter(|e| e["run"].as_str() == earlier.run.as_deref()).collect();
        let noted = !told.is_empty() && told.iter().all(|e| e["event"] != "RunReplaced");
        ensure!(!noted, "written by {:?}, which was under way, and again: {}", earlier.run, story());
    }
    // An earlier run may be cut off by the next; the one that counts has no second thoughts.
    let gave_up = life.iter().any(|e| matches!(e.what, What::GaveUp(_)) && e.run == done.run);
    ensure!(!gave_up, "an agent gave up: {}", story());

    // What was acknowledged is kept: the report itself, and that success was taken, once.
    ensure!(host["status"]["inspectionReport"]["serialNumber"] == name(server), "no report: {host}");
    let taken = |event: &str| {
        history.iter().filter(|e| e["event"] == event && e["run"].as_str() == done.run.as_deref()).count()
    };
    for event in ["InspectComplete", "Provisioned"] {
        ensure!(taken(event) == 1, "{event} is {} times in the history: {}", taken(event), story());
    }
    let mut state = String::new();
    for entry in history {
        ensure!(
            entry["from"].as_str() == Some(&state) || entry["from"] == entry["to"],
            "a gap before {entry}: {}",
            story()
        );
        state = entry["to"].as_str().unwrap_or_default().to_owned();
    }
    ensure!(state == "Ready", "the history ends in {state}: {}", story());
    Ok(())
}

async fn machines_are_provisioned(room: &Room) -> Result<()> {
    let begun = Instant::now();
    loop {
        let machines = room.serve.admin()?.list("machines").await?;
        let done = machines.iter().filter(|m| m["status"]["phase"] == "Provisioned").count();
        let hosts: BTreeSet<_> = machines.iter().filter_map(|m| m["spec"]["providerID"].as_str()).collect();
        if done == SERVERS {
            ensure!(hosts.len() == SERVERS, "{} hosts for {SERVERS} machines", hosts.len());
            return Ok(());
        }
        ensure!(begun.elapsed() < RECOVERY, "{done} of {SERVERS} machines provisioned after {RECOVERY:?}");
        sleep(Duration::from_secs(1)).await;
    }
}
