//! Brings the network up: chooses the interface, gets an address, makes sure it leads to the controller.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use farrier_shared::contract::cmdline::BootParams;
use farrier_shared::contract::{MacAddress, StaticIp, WebUrl};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, sleep, timeout};

use super::dhcp::client::{self, Change, Client, DhcpError};
use super::links::{self, Choice, Link, LinkError};
use super::netlink::{Netlink, NetlinkError};
use super::{AddressPlan, NetworkConfig, resolver};

/// How long DHCP is tried. Spanning tree takes up to 50 s to open a port, LACP up to 90 s to fall back.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long a link may take to get a carrier before it is tried without.
const CARRIER_WAIT: Duration = Duration::from_secs(10);
/// How long the controller is looked for through a fresh address.
const REACH_WAIT: Duration = Duration::from_secs(60);
/// The same while other interfaces compete.
const RACE_REACH_WAIT: Duration = Duration::from_secs(5);
/// One attempt to connect.
const CONNECT_WAIT: Duration = Duration::from_secs(5);
/// Between attempts, and between looks at the carrier.
const PAUSE: Duration = Duration::from_millis(500);
/// Wait before a failed renewal machine is tried again.
const KEEPER_PAUSE: Duration = Duration::from_secs(5);

/// Why there is no network.
#[derive(Debug, thiserror::Error)]
pub enum NetError {
    /// No interface to use.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// No lease.
    #[error(transparent)]
    Dhcp(#[from] DhcpError),
    /// No interface of several got a lease.
    #[error("no interface got an address: {0}")]
    NoLease(String),
    /// The kernel refused the configuration.
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
    /// No netlink socket.
    #[error("no netlink socket: {0}")]
    Socket(#[from] std::io::Error),
}

/// What the run needs of the network.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The interface the firmware booted from.
    pub boot: Option<MacAddress>,
    /// A static address.
    pub static_ip: Option<StaticIp>,
    /// What is to be reached.
    pub api: WebUrl,
}

impl Wanted {
    /// As the command line says.
    pub fn from_params(params: &BootParams) -> Self {
        Self { boot: params.bootif, static_ip: params.static_ip.clone(), api: params.api.clone() }
    }
}

/// A network that is up, and stays up while this value lives: it renews the lease.
#[derive(Debug)]
pub struct Network {
    /// What was configured.
    pub config: NetworkConfig,
    keeper: Option<JoinHandle<()>>,
}

impl Drop for Network {
    fn drop(&mut self) {
        if let Some(keeper) = &self.keeper {
            keeper.abort();
        }
    }
}

/// Brings the network up. `root` is where `/sys` is.
///
/// # Errors
/// See [`NetError`]. A controller that does not answer is not one: the report's own error says more.
pub async fn bring_up(root: &Path, wanted: &Wanted) -> Result<Network, NetError> {
    let start = Instant::now();
    let netlink = Netlink::open()?;
    let choice = links::choose(&links::physical(root), wanted.boot, wanted.static_ip.is_some())?;
    let network = match (choice, &wanted.static_ip) {
        (Choice::One(link), Some(ip)) => {
            raise(&netlink, root, &link).await?;
            let network = configure(&netlink, link, AddressPlan::from_static(ip), None, start).await?;
            reach(&network.config, &wanted.api, REACH_WAIT).await;
            network
        }
        (Choice::One(link), None) => {
            raise(&netlink, root, &link).await?;
            let (lease, client) = client::acquire(&link, PATIENCE).await?;
            let network = configure(&netlink, link, lease.plan.clone(), Some((lease, client)), start).await?;
            reach(&network.config, &wanted.api, REACH_WAIT).await;
            network
        }
        (Choice::Race(links), _) => race(&netlink, root, links, &wanted.api, start).await?,
    };
    let NetworkConfig { interface, plan, took, .. } = &network.config;
    tracing::info!(interface, address = %plan.address, prefix = plan.prefix_len, ?took, "network is up");
    Ok(network)
}

/// Sets the link up and gives it a while to find a carrier.
async fn raise(netlink: &Netlink, root: &Path, link: &Link) -> Result<(), NetlinkError> {
    netlink.up(link.index).await?;
    let deadline = Instant::now() + CARRIER_WAIT;
    while !links::has_carrier(root, &link.name) && Instant::now() < deadline {
        sleep(PAUSE / 5).await;
    }
    Ok(())
}

async fn configure(
    netlink: &Netlink,
    link: Link,
    plan: AddressPlan,
    lease: Option<(super::dhcp::Lease, Client)>,
    start: Instant,
) -> Result<Network, NetlinkError> {
    netlink.clear(link.index).await;
    netlink.configure(link.index, &plan).await?;
    let (lease, client) = lease.unzip();
    let index = link.index;
    let config = NetworkConfig {
        interface: link.name,
        index,
        mac: link.mac,
        plan: plan.clone(),
        lease,
        took: start.elapsed(),
    };
    let keeper = client.map(|client| tokio::spawn(keep(netlink.clone(), index, plan, client)));
    Ok(Network { config, keeper })
}

/// Renews the lease for as long as the run takes.
async fn keep(netlink: Netlink, index: u32, mut plan: AddressPlan, mut client: Client) {
    loop {
        match client.next_change().await {
            Ok(Change::Bound(lease)) => {
                if lease.plan == plan {
                    tracing::debug!(address = %plan.address, "DHCP lease extended");
                    continue;
                }
                tracing::info!(old = %plan.address, new = %lease.plan.address, "DHCP lease changed");
                if lease.plan.address != plan.address {
                    netlink.clear(index).await;
                }
                if let Err(error) = netlink.configure(index, &lease.plan).await {
                    tracing::warn!(%error, "new lease not applied");
                }
                plan = lease.plan;
            }
            Ok(Change::Lost) => {
                tracing::warn!(address = %plan.address, "DHCP lease lost");
                netlink.clear(index).await;
            }
            Ok(Change::GaveUp) => {
                tracing::error!("no DHCP server answers any longer");
                return;
            }
            Err(error) => {
                tracing::warn!(%error, "DHCP renewal failed");
                sleep(KEEPER_PAUSE).await;
            }
        }
    }
}

/// Tries every interface at once; the first whose lease leads to the controller wins, the others go down.
async fn race(
    netlink: &Netlink,
    root: &Path,
    links: Vec<Link>,
    api: &WebUrl,
    start: Instant,
) -> Result<Network, NetError> {
    let mut attempts = JoinSet::new();
    for link in links.clone() {
        let (netlink, root): (Netlink, PathBuf) = (netlink.clone(), root.to_owned());
        attempts.spawn(async move {
            let lease = async {
                raise(&netlink, &root, &link).await.map_err(NetError::from)?;
                client::acquire(&link, PATIENCE).await.map_err(NetError::from)
            }
            .await;
            (link, lease)
        });
    }
    let mut failures = Vec::new();
    let mut spare: Vec<(Link, super::dhcp::Lease, Client)> = Vec::new();
    let mut winner = None;
    while let Some(attempt) = attempts.join_next().await {
        let (link, lease, client) = match attempt {
            Ok((link, Ok((lease, client)))) => (link, lease, client),
            Ok((link, Err(error))) => {
                failures.push(format!("{}: {error}", link.name));
                continue;
            }
            Err(error) => {
                failures.push(error.to_string());
                continue;
            }
        };
        let trial = match configure(netlink, link.clone(), lease.plan.clone(), None, start).await {
            Ok(trial) => trial,
            // One interface's odd lease says nothing of the others.
            Err(error) => {
                failures.push(format!("{}: {error}", link.name));
                netlink.clear(link.index).await;
                continue;
            }
        };
        if reach(&trial.config, api, RACE_REACH_WAIT).await {
            let plan = lease.plan.clone();
            winner = Some(configure(netlink, link, plan, Some((lease, client)), start).await?);
            break;
        }
        tracing::info!(interface = %link.name, "this interface does not lead to the controller");
        netlink.clear(link.index).await;
        spare.push((link, lease, client));
    }
    attempts.abort_all();
    if winner.is_none() {
        // None led to the controller: the one with a gateway is the best there is, and the report says the rest.
        spare.sort_by_key(|(link, lease, _)| (!lease.plan.has_gateway(), link.index));
        if let Some((link, lease, client)) = spare.into_iter().next() {
            let plan = lease.plan.clone();
            winner = Some(configure(netlink, link, plan, Some((lease, client)), start).await?);
        }
    }
    let network = winner.ok_or_else(|| NetError::NoLease(failures.join("; ")))?;
    for loser in links.iter().filter(|l| l.index != network.config.index) {
        if let Err(error) = netlink.down(loser.index).await {
            tracing::debug!(%error, "interface not set down");
        }
    }
    Ok(network)
}

/// Whether a TCP connection to the controller can be made within `wait`; each refusal is tried again, since a
/// port may still be learning and a controller restarting.
async fn reach(config: &NetworkConfig, api: &WebUrl, wait: Duration) -> bool {
    let deadline = Instant::now() + wait;
    let mut last = String::from("no attempt finished");
    while Instant::now() < deadline {
        match timeout(CONNECT_WAIT.min(wait), connect(config, api)).await {
            Ok(Ok(())) => return true,
            Ok(Err(error)) => last = error.to_string(),
            Err(_elapsed) => "timed out".clone_into(&mut last),
        }
        sleep(PAUSE).await;
    }
    tracing::warn!(controller = %api.authority(), interface = %config.interface, cause = %last,
        "the controller cannot be reached yet");
    false
}

async fn connect(
    config: &NetworkConfig,
    api: &WebUrl,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let url = api.to_url();
    let port = url.port_or_known_default().unwrap_or(443);
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let addresses: Vec<SocketAddr> = match host.parse::<IpAddr>() {
        Ok(ip) => vec![SocketAddr::new(ip, port)],
        Err(_) => resolver(config)
            .resolve(host.parse().map_err(|_| "not a host name")?)
            .await?
            .map(|a| SocketAddr::new(a.ip(), port))
            .collect(),
    };
    tokio::net::TcpStream::connect(addresses.as_slice()).await?;
    Ok(())
}
