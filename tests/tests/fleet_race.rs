//! Many machines after few hosts, all at once, on real threads and a store on disk: each host gets one machine.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use farrier_controller::bmc::{Bmc, BmcError, BootMode, Call, Connector, HostAccess, ResetKind};
use farrier_controller::boot::Renderer;
use farrier_controller::clock::SystemClock;
use farrier_controller::progress::Progress;
use farrier_controller::reconcile::{self, Context};
use farrier_controller::store::Store;
use farrier_shared::lifecycle::fault::BmcFacts;
use farrier_shared::lifecycle::{PowerState, Timings};
use farrier_shared::resource::condition::Truth;
use farrier_shared::resource::{Beskar7Machine, HostState, PhysicalHost, Secret};
use serde_json::json;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

const ROUNDS: usize = 100;
const MACHINES: usize = 64;
const HOSTS: usize = 32;
/// Longest a round may take on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// BMCs of servers that are off and fine.
#[derive(Clone, Debug)]
struct Quiet;

impl Connector for Quiet {
    fn connect<'a>(&'a self, _: &'a HostAccess) -> Call<'a, Arc<dyn Bmc>> {
        Box::pin(async { Ok(Arc::new(Quiet) as Arc<dyn Bmc>) })
    }
}

impl Bmc for Quiet {
    fn system_info(&self) -> Call<'_, BmcFacts> {
        Box::pin(async { Ok(BmcFacts { power: Some(PowerState::Off), ..BmcFacts::default() }) })
    }
    fn power_state(&self) -> Call<'_, PowerState> {
        Box::pin(async { Ok(PowerState::Off) })
    }
    fn set_boot_pxe_once(&self, _: BootMode) -> Call<'_, ()> {
        Box::pin(async { Ok::<(), BmcError>(()) })
    }
    fn clear_boot_override(&self) -> Call<'_, ()> {
        Box::pin(async { Ok(()) })
    }
    fn reset(&self, _: ResetKind) -> Call<'_, ()> {
        Box::pin(async { Ok(()) })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_64_machines_that_race_for_32_hosts_32_win_in_each_of_100_rounds() -> Result<()> {
    let begun = Instant::now();
    let mut winners = BTreeSet::new();
    for round in 0..ROUNDS {
        winners.extend(one_round().await.with_context(|| format!("round {round}"))?);
    }
    println!(
        "{ROUNDS} rounds in {:.1?}; {} of {MACHINES} machines won at least once",
        begun.elapsed(),
        winners.len()
    );
    Ok(())
}

/// Gives the winners.
async fn one_round() -> Result<BTreeSet<String>> {
    let dir = tempfile::tempdir()?;
    let store = Store::open(dir.path())?;
    let stop = CancellationToken::new();
    let context = Context {
        store: store.clone(),
        progress: Progress::new(),
        clock: SystemClock::shared(),
        timings: Arc::new(Timings::default()),
        bmc: Arc::new(Quiet),
        url_base: "https://farrier.example:8082".parse()?,
        scripts: Arc::new(Renderer {
            ca: Arc::new(b"PEM".to_vec()),
            url_base: "https://farrier.example:8082".parse()?,
            reference_boot: false,
        }),
        logs_dir: dir.path().join("logs"),
        max_concurrent: MACHINES,
    };
    store.create(login()?).await?;
    for number in 0..HOSTS {
        store.create(host(number)?).await?;
    }
    let controller = tokio::spawn(reconcile::run(context, stop.clone()));
    until(&store, |hosts| hosts.iter().all(|h| h.status.state == HostState::Available)).await?;

    // No machine is known before all are: they start together.
    let machines = (0..MACHINES).map(machine).collect::<Result<Vec<_>>>()?;
    let created: Vec<_> = machines
        .into_iter()
        .map(|machine| {
            let store = store.clone();
            tokio::spawn(async move { store.create(machine).await })
        })
        .collect();
    for task in created {
        task.await??;
    }
    let hosts = until(&store, |hosts| hosts.iter().all(|h| h.status.state == HostState::InUse)).await?;
    let winners = claims(&hosts);
    ensure!(winners.len() == HOSTS, "{HOSTS} hosts went to {} machines", winners.len());

    // Nobody is moved afterwards, and nobody else believes to have won.
    sleep(Duration::from_millis(50)).await;
    let hosts: Vec<PhysicalHost> = store.list(None).await?;
    ensure!(claims(&hosts) == winners, "hosts changed hands");
    let associated = |m: &Beskar7Machine| {
        m.status.conditions.iter().any(|c| c.kind == "PhysicalHostAssociated" && c.status == Truth::True)
    };
    let machines: Vec<Beskar7Machine> = store.list(None).await?;
    for machine in machines.iter().filter(|m| associated(m)) {
        ensure!(
            winners.contains(machine.metadata.name.as_str()),
            "{} lost and says it won",
            machine.metadata.name
        );
    }
    stop.cancel();
    controller.await?;
    Ok(winners)
}

fn claims(hosts: &[PhysicalHost]) -> BTreeSet<String> {
    hosts.iter().filter_map(|host| Some(host.spec.consumer_ref.as_ref()?.name.clone())).collect()
}

async fn until(store: &Store, holds: impl Fn(&[PhysicalHost]) -> bool) -> Result<Vec<PhysicalHost>> {
    let begun = Instant::now();
    loop {
        let hosts: Vec<PhysicalHost> = store.list(None).await?;
        if hosts.len() == HOSTS && holds(&hosts) {
            return Ok(hosts);
        }
        let mut states: BTreeMap<String, usize> = BTreeMap::new();
        for host in &hosts {
            *states.entry(host.status.state.to_string()).or_default() += 1;
        }
        ensure!(begun.elapsed() < LIMIT, "after {LIMIT:?} hosts are {states:?}");
        sleep(Duration::from_millis(10)).await;
    }
}

fn login() -> Result<Secret> {
    let mut secret: Secret = serde_json::from_value(json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {
            "name": "login", "namespace": "default",
            "annotations": { "beskar7.infrastructure.cluster.x-k8s.io/bmc-addresses": "192.0.2.0/24" },
        },
        "stringData": { "username": "operator", "password": "race-password" },
    }))?;
    secret.merge_string_data();
    Ok(secret)
}

fn host(number: usize) -> Result<PhysicalHost> {
    Ok(serde_json::from_value(json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "PhysicalHost",
        "metadata": { "name": format!("h{number}"), "namespace": "default" },
        "spec": { "redfishConnection": {
            "address": format!("https://192.0.2.{number}"), "credentialsSecretRef": "login",
        } },
    }))?)
}

fn machine(number: usize) -> Result<Beskar7Machine> {
    Ok(serde_json::from_value(json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "Beskar7Machine",
        "metadata": { "name": format!("m{number}"), "namespace": "default" },
        "spec": {
            "inspectionImageURL": "http://images.example/inspection",
            "targetImageURL": "http://images.example/os.raw",
            "targetImageDigest": format!("sha256:{}", "ab".repeat(32)),
        },
    }))?)
}
