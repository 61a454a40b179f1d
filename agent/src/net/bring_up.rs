//! Brings the network up: makes the devices, gets addresses, and sees which of them lead to the controller.

use std::path::Path;

use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::config::NetworkConfig;
use super::contest::Contest;
use super::family::Desk;
use super::links::LinkError;
use super::netlink::{Netlink, NetlinkError};
use super::stack;
use super::trial::Trial;
use super::wanted::Wanted;
use super::{ipv6, keep};

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
        Trial::start(&netlink, root, candidate, &methods, wanted.mtu, desk)
    });
    let mut contest = Contest::new(netlink.clone(), wanted.clone(), trials.collect(), start);
    drop(sender);
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
