//! The controller in front of a BMC that fails in every way: `sushy-emulator` behind a proxy of faults.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use farrier_controller::bmc::Connector as _;
use farrier_controller::bmc::redfish::RedfishConnector;
use farrier_controller::boot::Renderer;
use farrier_controller::clock::SystemClock;
use farrier_controller::progress::Progress;
use farrier_controller::reconcile::{self, Context};
use farrier_controller::store::Store;
use farrier_shared::contract::{HostKey, Name};
use farrier_shared::lifecycle::fault::{BmcObservation, Failure, Transient};
use farrier_shared::lifecycle::verdict::sign;
use farrier_shared::lifecycle::{SignalKey, Timings, reasons};
use farrier_shared::resource::condition::{self, Truth};
use farrier_shared::resource::secret::SecretBytes;
use farrier_shared::resource::{Beskar7Machine, HostState, ObjectMeta, PhysicalHost, Secret};
use farrier_tests::fault_proxy::{Fault, FaultProxy};
use farrier_tests::sushy::{Emulator, PASSWORD, USER, program};
use serde_json::json;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

async fn proxy_to(emulator: &Emulator) -> Result<FaultProxy> {
    FaultProxy::start(&emulator.base, emulator.observer.clone(), &emulator.authority).await
}

#[tokio::test]
async fn every_fault_is_told_for_what_it_is() -> Result<()> {
    rustls::crypto::ring::default_provider().install_default().ok();
    let Some(program) = program()? else { return Ok(()) };
    let emulator = Emulator::start(&program).await?;
    let mut proxy = proxy_to(&emulator).await?;
    let mut access = emulator.access(PASSWORD, emulator.trust())?;
    access.base = proxy.base().parse()?;
    let passes = |class| BmcObservation::Unreachable { class };
    let table = [
        (Fault::Refuse, Some(passes(Transient::Refused))),
        (Fault::Reset, Some(passes(Transient::Reset))),
        (Fault::Status(503), Some(passes(Transient::Http(503)))),
        (Fault::Status(401), None),
        (Fault::Garbage, None),
        (Fault::Redirect, None),
        (Fault::BadCertificate, None),
        // Longer than a call may take.
        (Fault::Slow(Duration::from_secs(120)), Some(passes(Transient::TimedOut))),
    ];
    for (fault, expected) in table {
        // Each with a connector of its own: none finds a connection that an earlier one left open.
        proxy.set(None).await?;
        RedfishConnector::new(None).connect(&access).await.with_context(|| format!("before {fault:?}"))?;
        proxy.set(Some(fault)).await?;
        let Err(error) = RedfishConnector::new(None).connect(&access).await else {
            anyhow::bail!("connected in spite of {fault:?}");
        };
        let seen = error.observation();
        let stays =
            matches!(seen, BmcObservation::Failed { failure: Failure::Connection | Failure::Login, .. });
        ensure!(expected.as_ref().map_or(stays, |expected| seen == *expected), "{fault:?} gave {seen:?}");
        ensure!(!error.to_string().contains(PASSWORD), "{error}");
    }
    Ok(())
}

/// A controller whose one host is behind the proxy.
struct Room {
    store: Store,
    stop: CancellationToken,
}

fn name(text: &str) -> Result<Name> {
    Ok(text.parse()?)
}

fn key(text: &str) -> Result<HostKey> {
    Ok(HostKey::new(name("default")?, name(text)?))
}

fn secret(text: &str, data: &[(&str, &str)]) -> Result<Secret> {
    let data = data.iter().map(|(k, v)| ((*k).to_owned(), SecretBytes::new(v.as_bytes().to_vec())));
    Ok(Secret::new(ObjectMeta::new(name("default")?, name(text)?), data.collect::<BTreeMap<_, _>>()))
}

impl Room {
    async fn open(proxy: &FaultProxy, emulator: &Emulator) -> Result<Self> {
        let store = Store::in_memory()?;
        let mut login = secret("login", &[("username", USER), ("password", PASSWORD)])?;
        let consent = [("bmc-addresses", "127.0.0.1"), ("bmc-ca-secret", "bmc-ca")];
        for (what, value) in consent {
            let annotation = format!("beskar7.infrastructure.cluster.x-k8s.io/{what}");
            login.metadata.annotations.insert(annotation, value.to_owned());
        }
        store.create(login).await?;
        store.create(secret("bmc-ca", &[("ca.crt", emulator.authority.pem())])?).await?;
        store.create(secret("user-data", &[("value", "#cloud-config")])?).await?;
        let host: PhysicalHost = serde_json::from_value(json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "PhysicalHost",
            "metadata": { "name": "h1" },
            "spec": { "redfishConnection": {
                "address": proxy.base(), "credentialsSecretRef": "login", "caBundleSecretRef": "bmc-ca",
            } },
        }))?;
        store.create(host).await?;
        let timings = Timings {
            healthy: Duration::from_millis(500),
            bmc_unreachable: Duration::from_millis(500),
            backoff_first: Duration::from_millis(250),
            backoff_last: Duration::from_millis(500),
            machine_poll: Duration::from_millis(500),
            soon: Duration::from_millis(100),
            claimed: Duration::from_millis(100),
            ..Timings::default()
        };
        let context = Context {
            store: store.clone(),
            progress: Progress::new(),
            clock: SystemClock::shared(),
            timings: Arc::new(timings),
            bmc: Arc::new(RedfishConnector::new(None)),
            url_base: "https://farrier.example:8082".parse()?,
            scripts: Arc::new(Renderer {
                ca: Arc::new(b"PEM".to_vec()),
                url_base: "https://farrier.example:8082".parse()?,
                reference_boot: false,
            }),
            logs_dir: std::env::temp_dir().join("farrier-has-no-logs"),
            max_concurrent: 4,
        };
        let stop = CancellationToken::new();
        tokio::spawn(reconcile::run(context, stop.clone()));
        Ok(Self { store, stop })
    }

    async fn host(&self) -> Result<PhysicalHost> {
        self.store.get(&key("h1")?).await?.context("the host is gone")
    }

    async fn until(&self, what: &str, holds: impl Fn(&PhysicalHost) -> bool) -> Result<()> {
        let begun = Instant::now();
        loop {
            let host = self.host().await?;
            if holds(&host) {
                return Ok(());
            }
            ensure!(begun.elapsed() < Duration::from_secs(120), "no {what}: {:?}", host.status);
            sleep(Duration::from_millis(50)).await;
        }
    }

    async fn reaches(&self, state: HostState) -> Result<()> {
        self.until(state.as_str(), |host| host.status.state == state).await
    }

    async fn agent_says(&self, signal: SignalKey, value: &str, report: Option<&str>) -> Result<()> {
        let credentials = self.store.credentials(&key("h1")?).await?.context("no credentials")?.value;
        let signal = sign(&self.host().await?, &credentials, signal, value, report.map(str::to_owned));
        Ok(self.store.put_signal(&key("h1")?, &signal).await?)
    }
}

fn bmc_is_well(host: &PhysicalHost) -> bool {
    condition::get(&host.status.conditions, reasons::REDFISH_CONNECTION_READY)
        .is_some_and(|c| c.status == Truth::True)
}

#[tokio::test]
async fn no_fault_of_a_bmc_costs_a_run_its_state() -> Result<()> {
    rustls::crypto::ring::default_provider().install_default().ok();
    let Some(program) = program()? else { return Ok(()) };
    let emulator = Emulator::start(&program).await?;
    let mut proxy = proxy_to(&emulator).await?;
    let room = Room::open(&proxy, &emulator).await?;
    room.reaches(HostState::Available).await?;
    let machine: Beskar7Machine = serde_json::from_value(json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "Beskar7Machine",
        "metadata": { "name": "m1" },
        "spec": {
            "inspectionImageURL": "http://farrier.example:8080/images/inspection",
            "targetImageURL": "https://images.example/os.raw",
            "targetImageDigest": format!("sha256:{}", "ab".repeat(32)),
            "bootstrap": { "dataSecretName": "user-data" },
        },
    }))?;
    room.store.create(machine).await?;
    room.reaches(HostState::Inspecting).await?;
    let run = room.host().await?.status.run;
    let faults = [
        Fault::Refuse,
        Fault::Reset,
        Fault::Status(401),
        Fault::Status(503),
        Fault::Garbage,
        Fault::Redirect,
        Fault::BadCertificate,
    ];
    let mut state = HostState::Inspecting;
    for fault in faults {
        proxy.set(None).await?;
        room.until("healthy BMC", bmc_is_well).await?;
        proxy.set(Some(fault)).await?;
        room.until(&format!("trace of {fault:?}"), |host| !bmc_is_well(host)).await?;
        let host = room.host().await?;
        ensure!(host.status.state == state && host.status.run == run, "{fault:?}: {:?}", host.status);
        if fault == Fault::Status(401) {
            // The agent does not know of the BMC's trouble, and its word counts.
            let report = r#"{"manufacturer":"QEMU","cpus":[],"memory":[],"disks":[],"nics":[]}"#;
            room.agent_says(SignalKey::InspectionResult, "result", Some(report)).await?;
            state = HostState::Deploying;
            room.reaches(state).await?;
        }
    }
    // Ready with the BMC away.
    room.agent_says(SignalKey::Provisioned, "provisioned", None).await?;
    room.reaches(HostState::Ready).await?;
    proxy.set(None).await?;
    room.until("healthy BMC", bmc_is_well).await?;
    ensure!(room.host().await?.status.state == HostState::Ready, "Ready is lost when the BMC is back");
    room.stop.cancel();
    Ok(())
}
