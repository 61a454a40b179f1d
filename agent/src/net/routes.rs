//! Which routes a plan comes to, in an order the kernel accepts.

use std::collections::HashSet;
use std::net::Ipv4Addr;

use super::config::{AddressPlan, mask};

/// A route as the kernel takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hop {
    pub(super) destination: Ipv4Addr,
    pub(super) prefix_len: u8,
    pub(super) gateway: Option<Ipv4Addr>,
    /// The gateway is on the link although no subnet says so.
    pub(super) on_link: bool,
}

/// Routes in an order the kernel accepts: those on the link before those through a gateway, narrow before wide. Of
/// several to one destination the first counts: servers list them by preference.
pub(super) fn hops(plan: &AddressPlan) -> Vec<Hop> {
    let mut known = HashSet::new();
    let mut hops: Vec<Hop> = plan
        .routes
        .iter()
        .filter(|r| r.via != plan.address)
        .map(|r| Hop {
            destination: Ipv4Addr::from(u32::from(r.destination) & mask(r.prefix_len)),
            prefix_len: r.prefix_len.min(32),
            gateway: (!r.via.is_unspecified()).then_some(r.via),
            on_link: !r.via.is_unspecified() && !plan.on_link(r.via),
        })
        .filter(|hop| known.insert((hop.destination, hop.prefix_len)))
        .collect();
    hops.sort_by_key(|h| (h.gateway.is_some(), std::cmp::Reverse(h.prefix_len)));
    hops
}

/// The routes of `old` to where `new` has none; those it has replace them.
pub(super) fn stale(old: &AddressPlan, new: &AddressPlan) -> Vec<Hop> {
    let kept: HashSet<_> = hops(new).iter().map(|hop| (hop.destination, hop.prefix_len)).collect();
    hops(old).into_iter().filter(|hop| !kept.contains(&(hop.destination, hop.prefix_len))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::config::Route;

    #[test]
    fn a_gateway_outside_the_subnet_is_reached_on_the_link() {
        let plan = AddressPlan::from_static(&"10.1.2.3::192.0.2.1:32".parse().unwrap());
        let hops = hops(&plan);
        assert_eq!(hops.len(), 1);
        assert!(hops[0].on_link);
        assert_eq!(hops[0].gateway, Some(Ipv4Addr::new(192, 0, 2, 1)));
    }

    #[test]
    fn link_routes_come_first_and_host_bits_are_dropped() {
        let mut plan = AddressPlan::from_static(&"10.1.2.3::10.1.2.1:24".parse().unwrap());
        plan.routes.push(Route {
            destination: Ipv4Addr::new(169, 254, 169, 254),
            prefix_len: 16,
            via: Ipv4Addr::UNSPECIFIED,
        });
        let hops = hops(&plan);
        assert_eq!((hops[0].gateway, hops[0].destination), (None, Ipv4Addr::new(169, 254, 0, 0)));
        assert_eq!((hops[1].prefix_len, hops[1].on_link), (0, false));
    }

    fn plan(routes: &[(&str, u8, &str)]) -> AddressPlan {
        let mut plan = AddressPlan::from_static(&"10.1.2.3:::24".parse().unwrap());
        plan.routes = routes
            .iter()
            .map(|(to, prefix_len, via)| Route {
                destination: to.parse().unwrap(),
                prefix_len: *prefix_len,
                via: via.parse().unwrap(),
            })
            .collect();
        plan
    }

    #[test]
    fn of_two_ways_to_one_place_the_first_is_taken() {
        let hops = hops(&plan(&[("0.0.0.0", 0, "10.1.2.1"), ("0.0.0.0", 0, "10.1.2.2")]));
        assert_eq!(hops.iter().map(|h| h.gateway).collect::<Vec<_>>(), [Some(Ipv4Addr::new(10, 1, 2, 1))]);
    }

    #[test]
    fn routes_that_are_no_longer_told_are_stale_and_those_told_otherwise_are_replaced() {
        let old = plan(&[
            ("0.0.0.0", 0, "10.1.2.1"),
            ("192.0.2.0", 24, "10.1.2.7"),
            ("198.51.100.0", 24, "0.0.0.0"),
        ]);
        let new = plan(&[("0.0.0.0", 0, "10.1.2.9"), ("192.0.2.0", 25, "10.1.2.7")]);
        let gone: Vec<_> = stale(&old, &new).iter().map(|h| (h.destination, h.prefix_len)).collect();
        assert_eq!(gone, [(Ipv4Addr::new(198, 51, 100, 0), 24), (Ipv4Addr::new(192, 0, 2, 0), 24)]);
        assert_eq!(stale(&old, &old), []);
    }
}
