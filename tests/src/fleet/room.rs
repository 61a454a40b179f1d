//! A room of played servers and the controller that looks after them.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinHandle, JoinSet};
use tokio::time::{Instant, sleep};

use super::agent::{self, Behaviour, Pace};
use super::bmc::{Bmcs, Switched};
use super::firmware::{Booted, Firmware};
use super::ledger::{Ledger, What};
use super::serve::Serve;
use super::{address, mac, objects};

/// Between two attempts of a server that found nothing to boot.
const BOOT_AGAIN: Duration = Duration::from_secs(1);

/// What a room is to be.
#[expect(missing_debug_implementations, reason = "it holds a function")]
pub struct Plan<'a> {
    /// Servers in it.
    pub servers: usize,
    /// What each does with its run.
    pub behaviour: &'a (dyn Fn(usize) -> Behaviour + Sync),
    /// How soon they ask again.
    pub pace: Pace,
    /// Further flags of the controller.
    pub flags: &'a [&'a str],
}

/// A room; its servers are off, and its controller has no objects yet.
#[derive(Debug)]
pub struct Room {
    /// The controller.
    pub serve: Serve,
    /// What the servers lived through.
    pub ledger: Arc<Ledger>,
    servers: usize,
    bmcs: Bmcs,
    power: JoinHandle<()>,
}

impl Drop for Room {
    fn drop(&mut self) {
        self.power.abort();
    }
}

impl Room {
    /// Sets a room up in `dir` and starts its controller.
    ///
    /// # Errors
    /// When a port is taken, or the controller does not start.
    pub async fn open(program: &Path, dir: &Path, plan: &Plan<'_>) -> Result<Self> {
        let mut serve = Serve::new(program, dir, plan.flags)?;
        let ledger = Arc::new(Ledger::default());
        let (switched, switches) = mpsc::unbounded_channel();
        let bmcs = Bmcs::serve(plan.servers, switched).await?;
        let behaviours: Vec<_> = (0..plan.servers).map(plan.behaviour).collect();
        let (controller, pace) = (serve.plain_base(), plan.pace);
        let servers = Servers { controller, behaviours, pace, ledger: Arc::clone(&ledger) };
        let power = tokio::spawn(Arc::new(servers).live(switches));
        serve.spawn()?;
        serve.answers().await?;
        Ok(Self { serve, ledger, servers: plan.servers, bmcs, power })
    }

    /// Makes the hosts known, and their BMCs' login.
    ///
    /// # Errors
    /// When the controller refuses one.
    pub async fn add_hosts(&self) -> Result<()> {
        let admin = self.serve.admin()?;
        let secrets = [objects::login(), objects::certificate(&self.bmcs.certificate)];
        admin.create("secrets", secrets).await?;
        admin.create("hosts", (0..self.servers).map(|n| objects::host(n, self.bmcs.port))).await
    }

    /// Asks for one machine on each host.
    ///
    /// # Errors
    /// When the controller refuses one.
    pub async fn add_machines(&self) -> Result<()> {
        let admin = self.serve.admin()?;
        admin.create("secrets", (0..self.servers).map(objects::user_data)).await?;
        admin.create("machines", (0..self.servers).map(objects::machine)).await
    }

    /// Waits until that many hosts satisfy `holds`; gives all hosts.
    ///
    /// # Errors
    /// When that takes longer than `limit`, with a summary of where the hosts are.
    pub async fn until(
        &self,
        count: usize,
        limit: Duration,
        every: Duration,
        holds: impl Fn(&Value) -> bool,
    ) -> Result<Vec<Value>> {
        let begun = Instant::now();
        let admin = self.serve.admin()?;
        loop {
            let hosts = admin.list("hosts").await.unwrap_or_default();
            if hosts.iter().filter(|host| holds(host)).count() >= count {
                return Ok(hosts);
            }
            if begun.elapsed() > limit {
                bail!(
                    "not {count} hosts after {limit:?}: {}; see {}",
                    states(&hosts),
                    self.serve.log().display()
                );
            }
            sleep(every).await;
        }
    }
}

/// How many hosts are in each state, and what the first in `Error` says.
fn states(hosts: &[Value]) -> String {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for host in hosts {
        *counts.entry(host["status"]["state"].as_str().unwrap_or("New")).or_default() += 1;
    }
    let error =
        hosts.iter().find_map(|host| host["status"]["errorMessage"].as_str().filter(|t| !t.is_empty()));
    format!("{counts:?}, first error: {}", error.unwrap_or("none"))
}

struct Servers {
    controller: String,
    behaviours: Vec<Behaviour>,
    pace: Pace,
    ledger: Arc<Ledger>,
}

impl Servers {
    /// Boots what is switched on, and stops what is switched off.
    async fn live(self: Arc<Self>, mut switches: mpsc::UnboundedReceiver<(usize, Switched)>) {
        let mut running = JoinSet::new();
        let mut boots: HashMap<usize, AbortHandle> = HashMap::new();
        while let Some((server, switched)) = switches.recv().await {
            while running.try_join_next().is_some() {}
            if let Some(boot) = boots.remove(&server) {
                boot.abort();
            }
            match switched {
                Switched::Off => self.ledger.note(server, None, What::Off),
                Switched::On { network } => {
                    self.ledger.note(server, None, What::Powered { network });
                    if network {
                        let this = Arc::clone(&self);
                        boots.insert(server, running.spawn(async move { this.boot(server).await }));
                    }
                }
            }
        }
    }

    async fn boot(&self, server: usize) {
        let haste = self.pace.haste();
        let firmware = match Firmware::new(&self.controller, address(server), &mac(server), haste) {
            Ok(firmware) => firmware,
            Err(error) => return self.ledger.note(server, None, What::GaveUp(error.to_string())),
        };
        let cmdline = loop {
            match firmware.boot().await {
                Booted::Kernel(cmdline) => break cmdline,
                // The disk is empty: the firmware goes through its boot order once more.
                Booted::Disk => sleep(BOOT_AGAIN).await,
            }
        };
        drop(firmware);
        let behaviour = &self.behaviours[server];
        if let Err(error) = agent::run(server, &cmdline, behaviour, self.pace, &self.ledger).await {
            tracing::warn!(server, %error, "a run failed");
        }
    }
}
