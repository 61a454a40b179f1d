//! The agent of one server: the real callback client, and a disk that takes no bytes.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use farrier_agent::callback::{CallbackError, Client, Policy};
use farrier_shared::contract::InspectionReport;
use farrier_shared::contract::callback::{Event, EventName};
use farrier_shared::contract::cmdline::BootParams;
use farrier_shared::contract::paths::Callback;
use reqwest::dns::{Name, Resolve, Resolving};
use tokio::time::{Instant, sleep};

use super::ledger::{Ledger, What};
use super::{mac, name};

/// What a server does with its run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Behaviour {
    /// Installs, and takes this long to write.
    Writes(Duration),
    /// Reports this failure instead of writing.
    Fails(String),
    /// Begins to write, tells so, and then says nothing more, with its power on.
    Stalls,
    /// Says nothing at all once its report is in.
    Vanishes,
    /// Boots the inspection image and never says a word.
    Silent,
}

/// Progress told while writing.
const STEPS: u32 = 4;
/// Size of the image that is not written.
const IMAGE: u64 = 4 << 30;

/// Addresses are literal in a fleet, so nothing is ever looked up.
#[derive(Debug)]
struct NoNames;

impl Resolve for NoNames {
    fn resolve(&self, name: Name) -> Resolving {
        let text = format!("a fleet has no names, and {} is one", name.as_str());
        Box::pin(async move { Err(text.into()) })
    }
}

/// How soon servers ask again that were told to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// As real ones do: what is measured is what a controller will meet.
    Real,
    /// Much sooner, and not discouraged by a controller that is killed all the time: that is what is being tested.
    Hurried,
}

impl Pace {
    fn policy(self) -> Policy {
        match self {
            Self::Real => Policy::default(),
            Self::Hurried => Policy {
                patience: Duration::from_secs(24 * 3600),
                first_wait: Duration::from_millis(100),
                longest_wait: Duration::from_secs(1),
                poll: Duration::from_millis(500),
                ..Policy::default()
            },
        }
    }

    /// How many times faster than real firmware a server's firmware waits.
    pub(super) fn haste(self) -> u32 {
        match self {
            Self::Real => 1,
            Self::Hurried => 20,
        }
    }
}

/// One run; `Ok` once the controller has acknowledged what there was to say.
pub(super) async fn run(
    server: usize,
    cmdline: &str,
    behaviour: &Behaviour,
    pace: Pace,
    ledger: &Ledger,
) -> Result<()> {
    let params = BootParams::parse(cmdline)?;
    let run = params.extra.get("run").cloned().context("the script names no run")?;
    if params.host.name.as_str() != name(server) {
        bail!("server {server} was given the script of {}", params.host);
    }
    let client = Client::new(&params, Arc::new(NoNames), pace.policy())?;
    let agent = Agent { server, client, run, ledger };
    agent.note(What::Began);
    match agent.work(behaviour).await {
        Ok(()) => Ok(()),
        Err(error) => {
            agent.note(What::GaveUp(error.to_string()));
            let told = agent.client.provision_failed(&error.to_string()).await?;
            if told {
                agent.note(What::Acknowledged(Callback::ProvisionFailed));
            }
            Err(error.into())
        }
    }
}

struct Agent<'a> {
    server: usize,
    client: Client,
    run: String,
    ledger: &'a Ledger,
}

impl Agent<'_> {
    fn note(&self, what: What) {
        self.ledger.note(self.server, Some(&self.run), what);
    }

    async fn work(&self, behaviour: &Behaviour) -> Result<(), CallbackError> {
        if *behaviour == Behaviour::Silent {
            return std::future::pending().await;
        }
        self.tell(EventName::Preparing, None).await;
        let report = report(self.server);
        self.timed(Callback::Inspection, self.client.report(&report)).await?;
        if *behaviour == Behaviour::Vanishes {
            return std::future::pending().await;
        }
        // How long this takes is how long user-data is not due yet, so it tells nothing of answers.
        self.client.bootstrap().await?;
        self.note(What::Acknowledged(Callback::Bootstrap));
        match behaviour {
            Behaviour::Writes(time) => {
                for step in 1..=STEPS {
                    self.tell(EventName::Installing, Some(step)).await;
                    sleep(*time / STEPS).await;
                }
                self.note(What::Wrote);
                self.timed(Callback::Provisioned, self.client.provisioned()).await
            }
            Behaviour::Fails(reason) => {
                let call = self.client.provision_failed(reason);
                self.timed(Callback::ProvisionFailed, call).await.map(drop)
            }
            Behaviour::Stalls | Behaviour::Vanishes | Behaviour::Silent => {
                self.tell(EventName::Installing, Some(1)).await;
                std::future::pending().await
            }
        }
    }

    async fn timed<T>(
        &self,
        what: Callback,
        call: impl Future<Output = Result<T, CallbackError>>,
    ) -> Result<T, CallbackError> {
        let begun = Instant::now();
        let answer = call.await?;
        self.ledger.took(begun.elapsed());
        self.note(What::Acknowledged(what));
        Ok(answer)
    }

    /// One attempt, as the real agent's events.
    async fn tell(&self, event: EventName, step: Option<u32>) {
        let event = Event {
            event,
            message: String::new(),
            run: Some(self.run.clone()),
            step: step.map(|_| "write".to_owned()),
            bytes: step.map(|step| IMAGE / u64::from(STEPS) * u64::from(step)),
            total: step.map(|_| IMAGE),
            bytes_per_second: None,
        };
        let begun = Instant::now();
        match self.client.event(&event).await {
            Ok(_) => self.ledger.took(begun.elapsed()),
            Err(error) => tracing::debug!(%error, "an event was lost"),
        }
    }
}

/// A report of ordinary size: two packages, sixteen modules, two disks, two cards.
fn report(server: usize) -> InspectionReport {
    let memory: Vec<_> = (0..16)
        .map(|slot| serde_json::json!({"id": format!("DIMM_{slot}"), "type": "DDR5", "capacity": "32GiB", "speed": "4800MHz"}))
        .collect();
    let cpu = |id| serde_json::json!({"id": id, "vendor": "Acme", "model": "Acme Forge 9000 32-Core Processor", "cores": 32, "threads": 64, "frequency": "2.9GHz"});
    let disk = |device, serial: String| serde_json::json!({"name": device, "model": "Acme Anvil 3840", "sizeGB": 3840, "type": "NVMe", "serialNumber": serial});
    let card = |device, address| serde_json::json!({"name": device, "macAddress": address, "driver": "acme", "speed": "25Gbps", "ipAddresses": ["10.0.0.9"]});
    let report = serde_json::json!({
        "manufacturer": "Acme", "model": "Anvil 2000", "serialNumber": name(server),
        "bootModeDetected": "UEFI", "firmwareVersion": "1.2.3",
        "cpus": [cpu("0"), cpu("1")],
        "memory": memory,
        "disks": [disk("/dev/nvme0n1", format!("S0-{server}")), disk("/dev/nvme1n1", format!("S1-{server}"))],
        "nics": [card("eth0", mac(server)), card("eth1", mac(server).replacen("02:fa:00", "02:fa:01", 1))],
    });
    serde_json::from_value(report).unwrap_or_default()
}
