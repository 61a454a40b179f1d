//! Obtains and keeps the settings of one interface: IPv4 and IPv6 at the same time, each in its own way.

use std::path::PathBuf;
use std::time::Duration;

use tokio::sync::{mpsc, watch};

use super::auto6;
use super::carrier;
use super::config::{AddressPlan, Ipv6Plan};
use super::dhcp::Lease;
use super::dhcp::client::{Change, Client};
use super::ipv6::{self, Autoconf, RouterSocket};
use super::netlink::Netlink;
use super::stack::{Candidate, await_carrier};
use super::wanted::{Method4, Method6, Methods};

/// How long addresses are looked for. Spanning tree takes up to 50 s to open a port, LACP up to 90 s to fall back.
pub(super) const PATIENCE: Duration = Duration::from_secs(120);
/// Wait before something that failed for want of a socket is tried again.
pub(super) const SOCKET_PAUSE: Duration = Duration::from_secs(1);

/// A kind of address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    V4,
    V6,
}

/// What is new on an interface.
#[derive(Clone, Debug)]
pub(super) enum News {
    /// Settings to configure.
    V4(AddressPlan, Option<Lease>),
    /// The same.
    V6(Ipv6Plan),
    /// The addresses must go.
    Lost(Family),
    /// There will be none; why.
    Ended(Family, String),
    /// The link was away and is back.
    LinkBack,
}

/// Where news of one interface goes.
#[derive(Clone, Debug)]
pub(super) struct Desk {
    pub(super) number: usize,
    pub(super) sender: mpsc::Sender<(usize, News)>,
}

impl Desk {
    pub(super) async fn tell(&self, news: News) {
        // Nobody listens any longer: the network was given up, and this task with it.
        let _ = self.sender.send((self.number, news)).await;
    }
}

/// Runs until both families have come to an end, which those that renew never do.
pub(super) async fn run(netlink: Netlink, root: PathBuf, candidate: Candidate, methods: Methods, desk: Desk) {
    let link = &candidate.link;
    let (back, is_back) = watch::channel(());
    let _watch = carrier::watch(link.clone(), back, desk.clone());
    // Before the link is up: the kernel asks for routers at once, and one may answer at once.
    let routers = match methods.v6 {
        Some(method) => prepare6(&root, link, method),
        None if methods.v6_off => {
            ipv6::disable(&root, &link.name);
            Ok(None)
        }
        None => Ok(None),
    };
    if let Err(error) = netlink.up(link.index).await {
        for family in methods.families() {
            desk.tell(News::Ended(family, error.to_string())).await;
        }
        return;
    }
    let v4 = async {
        match methods.v4 {
            Some(Method4::Static(ip)) => {
                await_carrier(&netlink, link.index).await;
                desk.tell(News::V4(AddressPlan::from_static(&ip), None)).await;
            }
            Some(Method4::Dhcp) => {
                await_carrier(&netlink, link.index).await;
                lease4(Client::new(link, PATIENCE), is_back.clone(), &desk).await;
            }
            None => {}
        }
    };
    let v6 = async {
        match (methods.v6, routers) {
            (None, _) => {}
            (Some(_), Err(cause)) => desk.tell(News::Ended(Family::V6, cause)).await,
            (Some(Method6::Static(ip)), _) => {
                await_carrier(&netlink, link.index).await;
                desk.tell(News::V6(Ipv6Plan::from_static(&ip))).await;
            }
            (Some(method), Ok(Some(routers))) => {
                let at_once = method == Method6::Dhcp;
                auto6::run(&netlink, link, routers, at_once, is_back.clone(), &desk).await;
            }
            (Some(_), Ok(None)) => {}
        }
    };
    tokio::join!(v4, v6);
    // What is static still wants to know when the link was away.
    std::future::pending::<()>().await;
}

fn prepare6(
    root: &std::path::Path,
    link: &super::links::Link,
    method: Method6,
) -> Result<Option<RouterSocket>, String> {
    let by_hand = matches!(method, Method6::Static(_));
    let autoconf = if by_hand { Autoconf::Off } else { Autoconf::Addresses };
    ipv6::prepare(root, &link.name, autoconf).map_err(|e| format!("no IPv6 in this kernel ({e})"))?;
    if by_hand {
        return Ok(None);
    }
    let socket = RouterSocket::open(link.index);
    socket.map(Some).map_err(|e| format!("no packet socket for router advertisements: {e}"))
}

/// Leases an IPv4 address and keeps it for as long as the run takes.
async fn lease4(mut client: Client, mut is_back: watch::Receiver<()>, desk: &Desk) {
    loop {
        let change = tokio::select! {
            change = client.next_change() => change,
            Ok(()) = is_back.changed() => {
                client.link_back();
                continue;
            }
        };
        match change {
            Ok(Change::Bound(lease)) => desk.tell(News::V4(lease.plan.clone(), Some(lease))).await,
            Ok(Change::Lost) => desk.tell(News::Lost(Family::V4)).await,
            Ok(Change::GaveUp) => {
                desk.tell(News::Ended(Family::V4, client.no_lease().to_string())).await;
                return;
            }
            Err(error) if client.has_lease() => {
                tracing::warn!(%error, "DHCP renewal failed");
                tokio::time::sleep(SOCKET_PAUSE).await;
            }
            Err(error) => {
                desk.tell(News::Ended(Family::V4, error.to_string())).await;
                return;
            }
        }
    }
}
