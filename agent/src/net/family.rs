//! Obtains and keeps the settings of one interface: IPv4 and IPv6 at the same time, each in its own way.

use std::path::PathBuf;
use std::time::Duration;

use farrier_shared::contract::StaticIp;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::arp;
use super::auto6;
use super::carrier::{self, Carrier, await_carrier};
use super::config::{AddressPlan, Ipv6Plan};
use super::dhcp::Lease;
use super::dhcp::client::{Change, Client};
use super::ipv6::{self, Autoconf, RouterSocket};
use super::links::Link;
use super::netlink::Netlink;
use super::stack::Candidate;
use super::wanted::{Method4, Method6, Methods};

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

/// How long something is looked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    length: Duration,
    first: Instant,
    since: Instant,
}

impl Patience {
    pub(super) fn new(length: Duration, now: Instant) -> Self {
        Self { length, first: now, since: now }
    }

    /// A switch begins to learn the port only when the link is there: patience begins anew, but once, so that a link
    /// that flaps does not keep us for ever.
    pub(super) fn link_back(&mut self, now: Instant) {
        self.since = now.min(self.first + self.length);
    }

    pub(super) fn is_over(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.since) >= self.length
    }
}

/// Runs for as long as the interface is of use: renews, and looks again for what was lost.
pub(super) async fn run(
    netlink: Netlink,
    root: PathBuf,
    candidate: Candidate,
    methods: Methods,
    state: watch::Sender<Carrier>,
    desk: Desk,
) {
    let link = &candidate.link;
    let carrier = state.subscribe();
    let _watch = carrier::watch(link.clone(), state.clone(), desk.clone());
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
        match &methods.v4 {
            Some(Method4::Static(ip)) => {
                await_carrier(&netlink, link.index, &state).await;
                desk.tell(News::V4(static4(link, ip).await, None)).await;
            }
            Some(Method4::Dhcp) => {
                await_carrier(&netlink, link.index, &state).await;
                lease4(link, methods.patience, carrier.clone(), &desk).await;
            }
            None => {}
        }
    };
    let v6 = async {
        match (methods.v6, routers) {
            (None, _) => {}
            (Some(_), Err(cause)) => desk.tell(News::Ended(Family::V6, cause)).await,
            (Some(Method6::Static(ip)), _) => {
                await_carrier(&netlink, link.index, &state).await;
                desk.tell(News::V6(Ipv6Plan::from_static(&ip))).await;
            }
            (Some(method), Ok(Some(routers))) => {
                let order = auto6::Order { at_once: method == Method6::Dhcp, patience: methods.patience };
                let noted = await_carrier(&netlink, link.index, &state);
                let found = auto6::run(&netlink, link, routers, order, carrier.clone(), &desk);
                tokio::join!(noted, found);
            }
            (Some(_), Ok(None)) => {}
        }
    };
    tokio::join!(v4, v6);
    // What is static still wants to know when the link was away.
    std::future::pending::<()>().await;
}

/// The plan of a static address. One that is taken is used all the same, as the operator wants it, and said.
async fn static4(link: &Link, ip: &StaticIp) -> AddressPlan {
    let plan = AddressPlan::from_static(ip);
    if let Some(holder) = arp::holder(link, plan.address, plan.gateway()).await {
        let (interface, address) = (&link.name, plan.address);
        tracing::error!(interface, %address, %holder, "another machine on the link has this address");
    }
    plan
}

/// Why there is no address where there is no link.
pub(super) fn no_link(carrier: Carrier) -> Option<&'static str> {
    let cause = match carrier {
        Carrier { up: true, .. } => return None,
        Carrier { times: 0, .. } => "no link: nothing is at the other end of the cable, or its port is off",
        Carrier { .. } => "the link is lost",
    };
    Some(cause)
}

fn prepare6(root: &std::path::Path, link: &Link, method: Method6) -> Result<Option<RouterSocket>, String> {
    let by_hand = matches!(method, Method6::Static(_));
    let autoconf = if by_hand { Autoconf::Off } else { Autoconf::Addresses };
    ipv6::prepare(root, &link.name, autoconf).map_err(|e| format!("no IPv6 in this kernel ({e})"))?;
    if by_hand {
        return Ok(None);
    }
    let socket = RouterSocket::open(link.index);
    socket.map(Some).map_err(|e| format!("no packet socket for router advertisements: {e}"))
}

/// Leases an IPv4 address and keeps it for as long as the run takes: what was had once is looked for until it is had
/// again, since a server or a switch may be away for longer than a lease lasts.
async fn lease4(link: &Link, patience: Duration, mut carrier: watch::Receiver<Carrier>, desk: &Desk) {
    let mut client = Client::new(link, patience);
    let mut had = false;
    loop {
        let change = tokio::select! {
            change = client.next_change() => change,
            Ok(()) = carrier.changed() => {
                if carrier.borrow_and_update().up {
                    client.link_back();
                }
                continue;
            }
        };
        match change {
            Ok(Change::Bound(lease)) => {
                had = true;
                desk.tell(News::V4(lease.plan.clone(), Some(lease))).await;
            }
            Ok(Change::Lost) => desk.tell(News::Lost(Family::V4)).await,
            Ok(Change::GaveUp) if had => client = Client::new(link, patience),
            Ok(Change::GaveUp) => {
                let cause = no_link(*carrier.borrow()).map(str::to_owned);
                let cause = cause.unwrap_or_else(|| client.no_lease().to_string());
                desk.tell(News::Ended(Family::V4, cause)).await;
                return;
            }
            Err(error) if had => {
                tracing::warn!(%error, "DHCP goes on later");
                tokio::time::sleep(SOCKET_PAUSE).await;
            }
            Err(error) => {
                desk.tell(News::Ended(Family::V4, error.to_string())).await;
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_begins_anew_with_the_link_and_no_more_than_once() {
        let start = Instant::now();
        let seconds = |n| start + Duration::from_secs(n);
        let mut patience = Patience::new(Duration::from_secs(120), start);
        assert!(!patience.is_over(seconds(119)) && patience.is_over(seconds(120)));
        patience.link_back(seconds(100));
        assert!(!patience.is_over(seconds(219)) && patience.is_over(seconds(220)));
        patience.link_back(seconds(200));
        assert!(patience.is_over(seconds(240)), "a link that flaps");
    }

    #[test]
    fn a_link_that_is_not_there_is_the_reason() {
        assert_eq!(no_link(Carrier { up: true, times: 1 }), None);
        assert!(no_link(Carrier::default()).unwrap().contains("cable"));
        assert_eq!(no_link(Carrier { up: false, times: 2 }), Some("the link is lost"));
    }
}
