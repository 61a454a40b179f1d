//! IPv6 as the link's routers have it: the kernel's addresses, DHCPv6 where they say so, and their name servers.

use std::net::Ipv6Addr;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, interval, sleep};

use super::config::{Address6, Ipv6Plan};
use super::dhcp6::Lease6;
use super::dhcp6::client::{Change, Client};
use super::dhcp6::machine::Want;
use super::family::{Desk, Family, News, PATIENCE, SOCKET_PAUSE};
use super::ipv6::{RouterSocket, Routers};
use super::links::Link;
use super::netlink::{Netlink, Present6};

/// Between looks at the kernel's addresses, until there is one and after that.
const LOOK: Duration = Duration::from_millis(250);
const LATER_LOOK: Duration = Duration::from_secs(5);

/// What to ask DHCPv6 for, if anything. Once addresses were asked for, settings come along.
fn ask(routers: &Routers, at_once: bool) -> Option<Want> {
    match (at_once || routers.managed(), routers.other()) {
        (true, _) => Some(Want::Address),
        (false, true) => Some(Want::Settings),
        (false, false) => None,
    }
}

/// The link-local address, once it may be used.
fn link_local(present: &[Present6]) -> Option<Ipv6Addr> {
    let usable = |a: &&Present6| a.address.is_unicast_link_local() && !a.tentative && !a.duplicate;
    present.iter().find(usable).map(|a| a.address)
}

/// What all this comes to; [`None`] while there is no address.
fn plan(routers: &Routers, now: Duration, present: &[Present6], lease: Option<&Lease6>) -> Option<Ipv6Plan> {
    let leased = lease.map(|l| l.addresses.as_slice()).unwrap_or_default();
    let autoconf: Vec<Ipv6Addr> = present
        .iter()
        .filter(|a| !a.tentative && !a.duplicate && !a.deprecated)
        .map(|a| a.address)
        .filter(|a| !a.is_unicast_link_local() && !leased.contains(a))
        .collect();
    if autoconf.is_empty() && leased.is_empty() {
        return None;
    }
    let mut plan = Ipv6Plan {
        // Which prefix is on the link is for routers to say, not for a lease (RFC 8415, section 18.2.10.1).
        addresses: leased.iter().map(|address| Address6 { address: *address, prefix_len: 128 }).collect(),
        autoconf,
        gateway: routers.gateways(now).first().copied(),
        dns: routers.dns(now),
        search: routers.search(now),
        ntp: Vec::new(),
    };
    if let Some(lease) = lease {
        plan.ntp.clone_from(&lease.ntp);
        plan.dns.extend(lease.dns.iter().filter(|ip| !plan.dns.contains(ip)).copied().collect::<Vec<_>>());
        let more = lease.search.iter().filter(|d| !plan.search.contains(d)).cloned().collect::<Vec<_>>();
        plan.search.extend(more);
    }
    Some(plan)
}

/// Looks for addresses until patience is at an end, then keeps them for as long as the run takes.
pub(super) async fn run(
    netlink: &Netlink,
    link: &Link,
    socket: RouterSocket,
    at_once: bool,
    mut is_back: watch::Receiver<()>,
    desk: &Desk,
) {
    let start = Instant::now();
    let mut looks = interval(LOOK);
    let mut routers = Routers::default();
    let mut client: Option<(Want, Client)> = None;
    let mut lease: Option<Lease6> = None;
    let mut told: Option<Ipv6Plan> = None;
    let mut no_offer = false;
    let mut without_since = start;
    loop {
        tokio::select! {
            heard = socket.receive() => routers.heard(&heard, start.elapsed()),
            _ = looks.tick() => {}
            change = change(client.as_mut()) => match change {
                Some(Change::Bound(new)) => lease = Some(new),
                Some(Change::Lost) => {
                    lease = None;
                    told = None;
                    (without_since, looks) = (Instant::now(), interval(LOOK));
                    desk.tell(News::Lost(Family::V6)).await;
                }
                Some(Change::GaveUp { offered }) => no_offer = !offered,
                None => sleep(SOCKET_PAUSE).await,
            },
            Ok(()) = is_back.changed() => {
                if let Some((_, client)) = &mut client {
                    client.link_back();
                }
            }
        }
        let present = netlink.addresses6(link.index).await;
        if let (Some(want), Some(source)) = (ask(&routers, at_once), link_local(&present)) {
            let asked = client.as_ref().map(|(want, _)| *want);
            if asked.is_none() || asked == Some(Want::Settings) && want == Want::Address {
                client = Some((want, Client::new(link, source, want, PATIENCE)));
            }
        }
        let found = plan(&routers, start.elapsed(), &present, lease.as_ref());
        if found.is_some() && found != told {
            if told.is_none() {
                looks = interval(LATER_LOOK);
            }
            told.clone_from(&found);
            desk.tell(News::V6(found.unwrap_or_default())).await;
        }
        if told.is_none() && without_since.elapsed() >= PATIENCE {
            let cause = match (routers.any(), no_offer) {
                (_, true) => "no DHCPv6 server answers, though it is to give addresses",
                (true, _) => {
                    "routers advertise no prefix to make an address of, and no DHCPv6 server gave one"
                }
                (false, _) => "no router advertisement was heard",
            };
            desk.tell(News::Ended(Family::V6, format!("{cause} within {PATIENCE:?}"))).await;
            return;
        }
    }
}

/// The next change of a client that there may be; [`None`] when it cannot work just now.
async fn change(client: Option<&mut (Want, Client)>) -> Option<Change> {
    match client {
        Some((_, client)) => match client.next_change().await {
            Ok(change) => Some(change),
            Err(error) => {
                tracing::debug!(%error, "no DHCPv6 socket yet");
                None
            }
        },
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::ipv6::advertisement::{Advertisement, Lasting, Preference};

    fn routers(managed: bool, other: bool) -> Routers {
        let mut routers = Routers::default();
        let said = Advertisement {
            router: "fe80::1".parse().unwrap(),
            lifetime: 1800,
            preference: Preference::Medium,
            managed,
            other,
            mtu: None,
            dns: vec![Lasting { value: "fd00::53".parse().unwrap(), seconds: 600 }],
            search: Vec::new(),
        };
        routers.heard(&said, Duration::ZERO);
        routers
    }

    fn present(address: &str) -> Present6 {
        let address = address.parse().unwrap();
        Present6 { address, tentative: false, duplicate: false, deprecated: false }
    }

    fn lease(address: &[&str]) -> Lease6 {
        Lease6 {
            server: vec![1],
            addresses: address.iter().map(|a| a.parse().unwrap()).collect(),
            dns: vec!["fd00::53".parse().unwrap(), "fd00::54".parse().unwrap()],
            search: vec!["lab.example".into()],
            ntp: vec!["fd00::123".parse().unwrap()],
            duration: None,
            renew_after: Duration::MAX,
            rebind_after: Duration::MAX,
        }
    }

    #[test]
    fn routers_say_whether_dhcpv6_is_asked() {
        assert_eq!(ask(&Routers::default(), false), None);
        assert_eq!(ask(&Routers::default(), true), Some(Want::Address));
        assert_eq!(ask(&routers(false, false), false), None);
        assert_eq!(ask(&routers(false, true), false), Some(Want::Settings));
        assert_eq!(ask(&routers(true, true), false), Some(Want::Address));
    }

    #[test]
    fn addresses_still_being_checked_are_not_used() {
        let local = present("fe80::5");
        let global = present("fd00::5");
        let checked = Present6 { tentative: true, ..global };
        let taken = Present6 { duplicate: true, ..global };
        let old = Present6 { deprecated: true, ..global };
        assert_eq!(link_local(&[global, local]), Some(local.address));
        assert_eq!(link_local(&[Present6 { tentative: true, ..local }]), None);
        for unusable in [local, checked, taken, old] {
            assert_eq!(plan(&routers(false, false), Duration::ZERO, &[unusable], None), None, "{unusable:?}");
        }
        let plan = plan(&routers(false, false), Duration::ZERO, &[local, global], None).unwrap();
        assert_eq!((plan.autoconf, plan.addresses), (vec![global.address], vec![]));
        assert_eq!(plan.gateway, Some("fe80::1".parse().unwrap()));
    }

    #[test]
    fn a_lease_adds_what_routers_did_not_say() {
        let leased = present("fd00::77");
        let plan =
            plan(&routers(true, true), Duration::ZERO, &[leased], Some(&lease(&["fd00::77"]))).unwrap();
        assert_eq!(plan.addresses, [Address6 { address: leased.address, prefix_len: 128 }]);
        assert!(plan.autoconf.is_empty(), "the leased address is ours to keep");
        let dns: Vec<_> = plan.dns.iter().map(ToString::to_string).collect();
        assert_eq!(
            (dns, plan.search),
            (vec!["fd00::53".into(), "fd00::54".into()], vec!["lab.example".to_owned()])
        );
        assert_eq!(plan.ntp.len(), 1);
    }

    #[test]
    fn settings_alone_are_no_address() {
        assert_eq!(plan(&routers(false, true), Duration::ZERO, &[], Some(&lease(&[]))), None);
    }
}
