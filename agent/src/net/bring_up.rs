//! Brings the network up: makes the devices, gets addresses, and sees which of them lead to the controller.

use std::path::Path;
use std::time::Duration;

use farrier_shared::contract::options::Mtu;
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, timeout};

use super::config::{AddressPlan, Ipv6Plan, NetworkConfig};
use super::dhcp::Lease;
use super::family::{self, Desk, Family, News};
use super::links::LinkError;
use super::netlink::{Netlink, NetlinkError};
use super::reach::reach;
use super::stack::{self, Candidate};
use super::wanted::{Methods, Wanted};
use super::{ipv6, keep};

/// How long the controller is looked for through a fresh address.
const REACH_WAIT: Duration = Duration::from_secs(60);
/// How long it is looked for before another interface is tried.
const TRY_WAIT: Duration = Duration::from_secs(5);
/// The same where there is no other, before news is listened to again.
const ALONE_WAIT: Duration = Duration::from_secs(3);
/// Between its tries.
const ALONE_PAUSE: Duration = Duration::from_millis(100);
/// How long an IPv6 address may take to prove unique on its link (RFC 4862: one second, and the link's own time).
const DUPLICATE_WAIT: Duration = Duration::from_secs(5);
/// News that may wait to be read.
const QUEUE: usize = 64;

/// Why there is no network.
#[derive(Debug, thiserror::Error)]
pub enum NetError {
    /// No interface to use.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// No interface got an address.
    #[error("no interface got an address: {0}")]
    NoLease(String),
    /// The kernel refused the configuration.
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
    /// No netlink socket.
    #[error("no netlink socket: {0}")]
    Socket(#[from] std::io::Error),
}

/// A network that is up, and stays up while this value lives: it renews the lease and follows the link.
#[derive(Debug)]
pub struct Network {
    /// What was configured when it came up.
    pub config: NetworkConfig,
    /// What is configured now.
    pub(super) now: watch::Receiver<NetworkConfig>,
    keeper: JoinHandle<()>,
}

impl Drop for Network {
    fn drop(&mut self) {
        self.keeper.abort();
    }
}

/// One interface on trial.
#[derive(Debug)]
pub(super) struct Trial {
    pub(super) candidate: Candidate,
    pub(super) v4: Option<AddressPlan>,
    pub(super) lease: Option<Lease>,
    pub(super) v6: Option<Ipv6Plan>,
    /// MTU whatever the lease says.
    mtu: Option<Mtu>,
    /// Families from which nothing was heard yet.
    pending: Vec<Family>,
    /// What obtains and renews.
    #[expect(dead_code, reason = "held so that it ends with this value")]
    tasks: JoinSet<()>,
}

impl Trial {
    fn start(netlink: &Netlink, root: &Path, candidate: Candidate, methods: &Methods, desk: Desk) -> Self {
        let mut tasks = JoinSet::new();
        let root = root.to_owned();
        tasks.spawn(family::run(netlink.clone(), root, candidate.clone(), methods.clone(), desk));
        let pending = methods.families().collect();
        Self { candidate, v4: None, lease: None, v6: None, mtu: None, pending, tasks }
    }

    pub(super) fn index(&self) -> u32 {
        self.candidate.link.index
    }

    /// What it comes to, `took` after the start.
    pub(super) fn config(&self, took: Duration) -> NetworkConfig {
        NetworkConfig {
            interface: self.candidate.link.name.clone(),
            index: self.index(),
            mac: self.candidate.link.mac,
            v4: self.v4.clone(),
            lease: self.lease.clone(),
            v6: self.v6.clone(),
            took,
        }
    }

    /// Configures all that is known.
    ///
    /// # Errors
    /// The first address the kernel refuses.
    pub(super) async fn apply(&self, netlink: &Netlink) -> Result<(), NetlinkError> {
        let index = self.index();
        if let Some(plan) = &self.v4 {
            if let (Some(mtu), None) = (plan.mtu, self.mtu) {
                netlink.set_mtu(index, self.candidate.base, mtu).await;
            }
            netlink.configure4(index, plan).await?;
        }
        if let Some(plan) = &self.v6 {
            netlink.configure6(index, plan).await?;
            self.await_unique(netlink, plan).await;
        }
        Ok(())
    }

    /// Waits until the IPv6 addresses may be used.
    async fn await_unique(&self, netlink: &Netlink, plan: &Ipv6Plan) {
        let deadline = Instant::now() + DUPLICATE_WAIT;
        loop {
            let present = netlink.addresses6(self.index()).await;
            let ours =
                || present.iter().filter(|a| plan.addresses.iter().any(|own| own.address == a.address));
            if let Some(taken) = ours().find(|a| a.duplicate) {
                let (interface, address) = (&self.candidate.link.name, taken.address);
                tracing::error!(interface, %address, "another machine on the link has this address");
                return;
            }
            if !ours().any(|a| a.tentative) || Instant::now() >= deadline {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    async fn clear(&self, netlink: &Netlink) {
        netlink.clear4(self.index()).await;
        netlink.clear6(self.index()).await;
    }

    fn has_address(&self) -> bool {
        self.v4.is_some() || self.v6.is_some()
    }
}

/// Brings the network up. `root` is where `/sys` and `/proc` are.
///
/// # Errors
/// See [`NetError`]. A controller that does not answer is not one: the report's own error says more.
pub async fn bring_up(root: &Path, wanted: &Wanted) -> Result<Network, NetError> {
    let start = Instant::now();
    let netlink = Netlink::open()?;
    let methods = wanted.methods();
    tracing::debug!(?methods, "the network is looked for");
    let (sender, mut news) = mpsc::channel(QUEUE);
    let candidates = stack::build(&netlink, root, wanted).await?;
    let trials = candidates.into_iter().enumerate().map(|(number, candidate)| {
        let desk = Desk { number, sender: sender.clone() };
        let trial = Trial::start(&netlink, root, candidate, &methods, desk);
        Trial { mtu: wanted.mtu, ..trial }
    });
    let mut contest = Contest {
        alone: false,
        netlink: netlink.clone(),
        wanted: wanted.clone(),
        trials: trials.collect(),
        failures: Vec::new(),
        refused: None,
        last: 0,
        give_up: None,
        start,
    };
    drop(sender);
    contest.alone = contest.trials.len() == 1;
    let number = contest.run(&mut news).await?;
    let mut winner = None;
    for (n, trial) in contest.trials.into_iter().enumerate() {
        if n == number {
            winner = Some(trial);
        } else if let Err(error) = netlink.down(trial.index()).await {
            tracing::debug!(%error, "interface not set down");
        }
    }
    let winner = winner.ok_or_else(|| NetError::NoLease(contest.failures.join("; ")))?;
    ipv6::use_default_routers(root, &winner.candidate.link.name);
    let config = winner.config(start.elapsed());
    let NetworkConfig { interface, took, .. } = &config;
    tracing::info!(interface, addresses = ?config.addresses(), ?took, "network is up");
    let (state, now) = watch::channel(config.clone());
    let keeper = tokio::spawn(keep::keep(netlink, number, winner, news, state));
    Ok(Network { config, now, keeper })
}

/// All interfaces on trial: the first that leads to the controller wins.
struct Contest {
    netlink: Netlink,
    wanted: Wanted,
    trials: Vec<Trial>,
    /// There is nothing to choose: what is configured stays, and the controller is given more time.
    alone: bool,
    failures: Vec<String>,
    /// The last refusal of the kernel.
    refused: Option<NetlinkError>,
    /// The last that was tried again.
    last: usize,
    /// When the only interface is taken though it does not lead to the controller.
    give_up: Option<Instant>,
    start: Instant,
}

impl Contest {
    /// The number of the winner.
    async fn run(&mut self, news: &mut mpsc::Receiver<(usize, News)>) -> Result<usize, NetError> {
        loop {
            let number = match self.next(news).await {
                Some((number, item)) => {
                    if !self.take(number, item) {
                        if self.trials.iter().all(|t| t.pending.is_empty()) && !self.retries() {
                            return self.fallback().await;
                        }
                        continue;
                    }
                    number
                }
                None => self.again(),
            };
            if self.leads(number).await {
                return Ok(number);
            }
            let all_heard = self.trials.iter().all(|t| t.pending.is_empty());
            if let Some(error) = self.refused.take().filter(|_| self.alone && all_heard) {
                return Err(error.into());
            }
            if self.give_up.is_some_and(|end| Instant::now() >= end) {
                return Ok(0);
            }
            if !self.alone && all_heard && news.is_empty() {
                return self.fallback().await;
            }
        }
    }

    /// Whether the only interface has an address, and the controller is still looked for by it.
    fn retries(&self) -> bool {
        self.alone && self.trials.first().is_some_and(Trial::has_address)
    }

    /// The next of those with an address, in turn: a port may have opened, or a server come back.
    fn again(&mut self) -> usize {
        let with_address = |(number, trial): (usize, &Trial)| trial.has_address().then_some(number);
        let mut all = self.trials.iter().enumerate().filter_map(with_address);
        let first = all.next().unwrap_or(0);
        self.last = std::iter::once(first).chain(all).find(|n| *n > self.last).unwrap_or(first);
        self.last
    }

    /// The next news; [`None`] when the controller should be tried again without.
    async fn next(&self, news: &mut mpsc::Receiver<(usize, News)>) -> Option<(usize, News)> {
        if self.trials.iter().any(Trial::has_address) {
            let wait = if self.alone { ALONE_PAUSE } else { TRY_WAIT };
            return timeout(wait, news.recv()).await.ok().flatten();
        }
        match news.recv().await {
            Some(item) => Some(item),
            // The trials hold the senders; none ends by itself.
            None => std::future::pending().await,
        }
    }

    /// Takes news in; whether there is something to try.
    fn take(&mut self, number: usize, item: News) -> bool {
        let Some(trial) = self.trials.get_mut(number) else { return false };
        let heard = |trial: &mut Trial, family| trial.pending.retain(|p| *p != family);
        match item {
            News::V4(plan, lease) => {
                heard(trial, Family::V4);
                (trial.v4, trial.lease) = (Some(plan), lease);
            }
            News::V6(plan) => {
                heard(trial, Family::V6);
                trial.v6 = Some(plan);
            }
            News::Lost(family) => {
                match family {
                    Family::V4 => (trial.v4, trial.lease) = (None, None),
                    Family::V6 => trial.v6 = None,
                }
                return false;
            }
            News::Ended(family, cause) => {
                heard(trial, family);
                tracing::info!(interface = %trial.candidate.link.name, ?family, cause, "no address");
                self.failures.push(format!("{}: {cause}", trial.candidate.link.name));
                return false;
            }
            News::LinkBack => return trial.has_address(),
        }
        if self.alone {
            self.give_up = Some(Instant::now() + REACH_WAIT);
        }
        true
    }

    /// Configures an interface and sees whether the controller can be reached by it.
    async fn leads(&mut self, number: usize) -> bool {
        let Some(trial) = self.trials.get(number) else { return false };
        let name = &trial.candidate.link.name;
        if let Err(error) = trial.apply(&self.netlink).await {
            // One interface's odd lease says nothing of the others.
            tracing::warn!(interface = %name, %error, "not configured");
            self.failures.push(format!("{name}: {error}"));
            self.refused = Some(error);
            if !self.alone {
                trial.clear(&self.netlink).await;
            }
            return false;
        }
        let config = trial.config(self.start.elapsed());
        self.refused = None;
        let wait = if self.alone { ALONE_WAIT } else { TRY_WAIT };
        match reach(&config, &self.wanted.api, wait).await {
            Ok(()) => true,
            Err(cause) => {
                let controller = self.wanted.api.authority();
                tracing::warn!(controller, interface = %name, cause, "the controller cannot be reached yet");
                if !self.alone {
                    trial.clear(&self.netlink).await;
                }
                false
            }
        }
    }

    /// None led to the controller: the one with a gateway is the best there is, and the report says the rest.
    async fn fallback(&mut self) -> Result<usize, NetError> {
        let with_address = self.trials.iter().enumerate().filter(|(_, t)| t.has_address());
        let best = with_address
            .min_by_key(|(_, t)| (!t.config(Duration::ZERO).has_gateway(), t.index()))
            .map(|(number, _)| number);
        let Some(best) = best else { return Err(NetError::NoLease(self.failures.join("; "))) };
        if let Some(trial) = self.trials.get(best) {
            trial.apply(&self.netlink).await?;
        }
        Ok(best)
    }
}
