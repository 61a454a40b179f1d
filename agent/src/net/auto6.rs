//! IPv6 as the link's routers have it: the kernel's addresses, DHCPv6 where they say so, and their name servers.

use std::net::Ipv6Addr;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval, sleep};

use super::carrier::Carrier;
use super::config::{Address6, Ipv6Plan};
use super::dhcp6::Lease6;
use super::dhcp6::client::{Change, Client};
use super::dhcp6::machine::Want;
use super::family::{Desk, Family, News, Patience, SOCKET_PAUSE, no_link};
use super::ipv6::{RouterSocket, Routers};
use super::links::Link;
use super::netlink::{Netlink, Present6};

/// Between looks at the kernel's addresses, until there is one and after that.
const LOOK: Duration = Duration::from_millis(250);
const LATER_LOOK: Duration = Duration::from_secs(5);
/// Leased addresses that may turn out to be another machine's before the server is believed to have no other.
const MAX_TAKEN: u32 = 3;

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

/// Why there is no address.
fn cause(carrier: Carrier, routers: &Routers, no_offer: bool, present: &[Present6]) -> String {
    let taken = present.iter().find(|a| a.duplicate && a.address.is_unicast_link_local());
    match (no_link(carrier), taken) {
        (Some(cause), _) => return cause.to_owned(),
        (_, Some(local)) => {
            return format!("another machine on the link has our link-local address {}", local.address);
        }
        _ => {}
    }
    let cause = match (routers.any(), no_offer) {
        (_, true) => "no DHCPv6 server answers, though it is to give addresses",
        (true, _) => "routers advertise no prefix to make an address of, and no DHCPv6 server gave one",
        (false, _) => "no router advertisement was heard",
    };
    cause.to_owned()
}

/// How addresses are looked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Order {
    /// By DHCPv6 without waiting for a router to say so.
    pub(super) at_once: bool,
    /// For how long.
    pub(super) patience: Duration,
}

/// What happens at fixed times; those that were missed are not made up for.
fn ticks(period: Duration) -> Interval {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

/// Looks for addresses until patience is at an end, then keeps them for as long as the run takes; what was had once is
/// looked for until it is had again.
pub(super) async fn run(
    netlink: &Netlink,
    link: &Link,
    socket: RouterSocket,
    order: Order,
    mut carrier: watch::Receiver<Carrier>,
    desk: &Desk,
) {
    let start = Instant::now();
    let mut looks = ticks(LOOK);
    let mut routers = Routers::default();
    let mut client: Option<(Want, Client)> = None;
    let mut lease: Option<Lease6> = None;
    let mut told: Option<Ipv6Plan> = None;
    let (mut had, mut no_offer, mut taken) = (false, false, 0);
    let mut patience = Patience::new(order.patience, start);
    loop {
        tokio::select! {
            heard = socket.receive() => routers.heard(&heard, start.elapsed()),
            _ = looks.tick() => {}
            change = change(client.as_mut()) => match change {
                Some(Change::Bound(new)) => lease = Some(new),
                Some(Change::Lost) => {
                    (lease, told, looks) = (None, None, ticks(LOOK));
                    desk.tell(News::Lost(Family::V6)).await;
                }
                // The next client goes on looking.
                Some(Change::GaveUp { .. }) if had && told.is_none() => client = None,
                Some(Change::GaveUp { offered }) => no_offer = !offered,
                None => sleep(SOCKET_PAUSE).await,
            },
            Ok(()) = carrier.changed() => {
                if carrier.borrow_and_update().up {
                    patience.link_back(Instant::now());
                    if let Some((_, client)) = &mut client {
                        client.link_back();
                    }
                }
            }
        }
        let present = netlink.addresses6(link.index).await;
        if let (Some(want), Some(source)) = (ask(&routers, order.at_once), link_local(&present)) {
            let asked = client.as_ref().map(|(want, _)| *want);
            if asked.is_none() || asked == Some(Want::Settings) && want == Want::Address {
                client = Some((want, Client::new(link, source, want, order.patience)));
            }
        }
        if let (Some(address), Some((_, client))) = (duplicate(lease.as_ref(), &present), &mut client) {
            taken += 1;
            if taken >= MAX_TAKEN {
                let cause = format!("another machine on the link has {address}, as others before");
                desk.tell(News::Lost(Family::V6)).await;
                desk.tell(News::Ended(Family::V6, cause)).await;
                return;
            }
            // Not to be given back twice.
            lease = None;
            client.taken(address);
            continue;
        }
        let found = plan(&routers, start.elapsed(), &present, lease.as_ref());
        if found.is_some() && found != told {
            if told.is_none() {
                looks = ticks(LATER_LOOK);
            }
            had = true;
            told.clone_from(&found);
            desk.tell(News::V6(found.unwrap_or_default())).await;
        }
        if told.is_none() && !had && patience.is_over(Instant::now()) {
            let cause = cause(*carrier.borrow(), &routers, no_offer, &present);
            let cause = format!("{cause} within {:?}", order.patience);
            desk.tell(News::Ended(Family::V6, cause)).await;
            return;
        }
    }
}

/// The leased address that another machine turned out to have.
fn duplicate(lease: Option<&Lease6>, present: &[Present6]) -> Option<Ipv6Addr> {
    let leased = lease.map(|l| l.addresses.as_slice()).unwrap_or_default();
    present.iter().find(|a| a.duplicate && leased.contains(&a.address)).map(|a| a.address)
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
    fn only_a_leased_address_is_given_back() {
        let lease = lease(&["fd00::77"]);
        let taken = |text| Present6 { duplicate: true, ..present(text) };
        for (present, expected) in [
            (present("fd00::77"), None),
            (taken("fd00::77"), Some("fd00::77")),
            (taken("fd00::78"), None),
            (taken("fe80::5"), None),
        ] {
            let expected = expected.map(|text: &str| text.parse().unwrap());
            assert_eq!(duplicate(Some(&lease), &[present]), expected);
            assert_eq!(duplicate(None, &[present]), None);
        }
    }

    #[test]
    fn the_reason_is_the_first_thing_that_is_amiss() {
        let up = Carrier { up: true, times: 1 };
        let taken = [Present6 { duplicate: true, ..present("fe80::5") }];
        let (none, silent, managed) = (Routers::default(), routers(false, false), routers(true, false));
        for (carrier, routers, no_offer, present, part) in [
            (Carrier::default(), &none, true, &taken[..], "no link"),
            (up, &none, false, &taken, "has our link-local address fe80::5"),
            (up, &managed, true, &[], "no DHCPv6 server answers"),
            (up, &silent, false, &[], "advertise no prefix"),
            (up, &none, false, &[], "no router advertisement was heard"),
        ] {
            let cause = cause(carrier, routers, no_offer, present);
            assert!(cause.contains(part), "{cause} should say {part}");
        }
    }

    #[test]
    fn settings_alone_are_no_address() {
        assert_eq!(plan(&routers(false, true), Duration::ZERO, &[], Some(&lease(&[]))), None);
    }
}
