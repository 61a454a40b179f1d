//! A fleet of which a part fails, in every way there is: each such host ends in `Error` with its own reason, in its
//! time, and takes no other along.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use farrier_shared::contract::paths::Callback;
use farrier_tests::fleet::{Behaviour, Pace, Plan, Room, What, name};
use serde_json::Value;
use tokio::time::{Instant, sleep};

const SERVERS: usize = 40;
/// Minutes that real hosts get, in seconds.
const FLAGS: &[&str] =
    &["--inspection-timeout=40s", "--deployment-timeout=60s", "--stall-timeout=12s", "--deployment-cap=120s"];
/// From the machines' creation to the last end: the longest deadline and a busy machine's delays.
const LIMIT: Duration = Duration::from_secs(150);

/// Every fifth server of each kind; the one in five that is left installs.
fn behaviour(server: usize) -> Behaviour {
    match server % 5 {
        0 => Behaviour::Fails(format!("verify: disk {server} gave back other bytes")),
        1 => Behaviour::Stalls,
        2 => Behaviour::Vanishes,
        3 => Behaviour::Silent,
        _ => Behaviour::Writes(Duration::from_secs(2)),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn hosts_that_fail_stall_or_vanish_end_in_error_with_their_reason_and_the_others_are_ready()
-> Result<()> {
    rustls::crypto::ring::default_provider().install_default().ok();
    let dir = tempfile::tempdir()?;
    let outcome = live(dir.path()).await;
    if outcome.is_err() {
        println!("the controller's log is {}", dir.keep().join("controller.log").display());
    }
    outcome
}

async fn live(dir: &Path) -> Result<()> {
    let program = Path::new(env!("CARGO_BIN_EXE_farrier-under-test"));
    let plan = Plan { servers: SERVERS, behaviour: &behaviour, pace: Pace::Hurried, flags: FLAGS };
    let room = Room::open(program, dir, &plan).await?;
    room.add_hosts().await?;
    room.add_machines().await?;
    let ended = |host: &Value| host["status"]["state"] == "Ready" || host["status"]["state"] == "Error";
    let hosts = room.until(SERVERS, LIMIT, Duration::from_millis(500), ended).await?;
    ensure!(hosts.len() == SERVERS, "{} of {SERVERS} hosts are left", hosts.len());
    for (server, host) in hosts.iter().enumerate() {
        judge(&room, server, host).await.with_context(|| name(server))?;
    }
    machines_follow(&room).await
}

/// How a host has to end: its state, what its message says, and the event that ended it.
fn end_of(behaviour: &Behaviour) -> (&'static str, String, &'static str) {
    match behaviour {
        Behaviour::Writes(_) => ("Ready", String::new(), "Provisioned"),
        Behaviour::Fails(reason) => ("Error", reason.clone(), "ProvisionFailed"),
        Behaviour::Stalls => {
            ("Error", "stalled in step \"write\": no progress for 12s".to_owned(), "DeploymentOverdue")
        }
        Behaviour::Vanishes => ("Error", "no progress for 12s".to_owned(), "DeploymentOverdue"),
        // The machine gives the inspection up, a minute before the host would by itself.
        Behaviour::Silent => ("Error", "Inspection timed out".to_owned(), "Timeout"),
    }
}

async fn judge(room: &Room, server: usize, host: &Value) -> Result<()> {
    let behaviour = behaviour(server);
    let (state, message, event) = end_of(&behaviour);
    ensure!(host["metadata"]["name"] == name(server), "the list is not sorted: {host}");
    let status = &host["status"];
    let told = status["errorMessage"].as_str().unwrap_or_default();
    let fits = if message.is_empty() { told.is_empty() } else { told.contains(&message) };
    let history = room.serve.admin()?.history(&name(server)).await?;
    ensure!(status["state"] == state && fits, "{behaviour:?} ended in {status}: {history:#?}");

    let last = history.iter().rfind(|e| e["from"] != e["to"]).context("no history")?;
    ensure!(last["event"] == event, "{behaviour:?} was ended by {last}");
    // Nobody is booted again by itself: a disk half written waits for people.
    let life = room.ledger.of(server);
    let began = life.iter().filter(|e| e.what == What::Began).count();
    let wrote = life.iter().filter(|e| e.what == What::Wrote).count();
    ensure!(began == 1 && wrote == usize::from(state == "Ready"), "{behaviour:?}: {life:#?}");
    let success = life.iter().any(|e| e.what == What::Acknowledged(Callback::Provisioned));
    ensure!(success == (state == "Ready"), "{behaviour:?}: {life:#?}");
    Ok(())
}

/// Each machine ends as its host did, a pass later.
async fn machines_follow(room: &Room) -> Result<()> {
    let begun = Instant::now();
    loop {
        let machines = room.serve.admin()?.list("machines").await?;
        let phases: Vec<_> =
            machines.iter().map(|m| m["status"]["phase"].as_str().unwrap_or_default()).collect();
        let count = |phase: &str| phases.iter().filter(|p| **p == phase).count();
        if count("Failed") == SERVERS / 5 * 4 && count("Provisioned") == SERVERS / 5 {
            return Ok(());
        }
        ensure!(begun.elapsed() < LIMIT, "the machines are {phases:?}");
        sleep(Duration::from_millis(500)).await;
    }
}
