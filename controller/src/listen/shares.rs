//! How many of a listener's connections one address may hold: the others are for everybody else.
//!
//! An IPv6 address counts by itself, as an IPv4 one does: a provisioning VLAN is one network of 64 bits and may hold
//! thousands of agents. Since one machine may have any number of its network's addresses (RFC 4291, section 2.5.1), the
//! network has a share as well: large enough for a fleet, and never all there is.

use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// Who holds connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Owner {
    /// One address.
    Address(IpAddr),
    /// An IPv6 network, by its first 64 bits.
    Network([u16; 4]),
}

/// Connections open, by owner.
type Counts = Arc<Mutex<HashMap<Owner, usize>>>;

/// Connections open by owner, and the most each may have. Clones count together.
#[derive(Clone)]
pub struct Shares {
    of_address: usize,
    of_network: usize,
    exempt: Arc<dyn Fn(IpAddr) -> bool + Send + Sync>,
    open: Counts,
}

impl fmt::Debug for Shares {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shares")
            .field("of_address", &self.of_address)
            .field("of_network", &self.of_network)
            .finish_non_exhaustive()
    }
}

/// A place taken; given back when dropped.
#[derive(Debug)]
pub(super) struct Share {
    /// Whose it is, with the most each may have.
    owners: Vec<(Owner, usize)>,
    open: Counts,
}

impl Shares {
    /// At most `most` connections at a time for each address that is not exempt, and three quarters of the listener's
    /// `all` for each IPv6 network.
    pub fn new(most: usize, all: usize, exempt: impl Fn(IpAddr) -> bool + Send + Sync + 'static) -> Self {
        let of_network = all - all / 4;
        Self { of_address: most, of_network, exempt: Arc::new(exempt), open: Arc::default() }
    }

    /// As many as the listener has.
    pub fn unlimited() -> Self {
        Self::new(0, 0, |_| true)
    }

    /// A place for a connection from `peer`, if its address and its network have one left.
    pub(super) fn take(&self, peer: IpAddr) -> Option<Share> {
        let owners = self.owners(peer.to_canonical());
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if owners.iter().any(|(owner, most)| open.get(owner).copied().unwrap_or(0) >= *most) {
            return None;
        }
        for (owner, _) in &owners {
            *open.entry(*owner).or_default() += 1;
        }
        drop(open);
        Some(Share { owners, open: Arc::clone(&self.open) })
    }

    fn owners(&self, peer: IpAddr) -> Vec<(Owner, usize)> {
        if (self.exempt)(peer) {
            return Vec::new();
        }
        let mut owners = vec![(Owner::Address(peer), self.of_address)];
        if let IpAddr::V6(v6) = peer {
            let [a, b, c, d, ..] = v6.segments();
            owners.push((Owner::Network([a, b, c, d]), self.of_network));
        }
        owners
    }
}

impl Share {
    /// Whether an owner has more than half of what it may have, so that none is to be held without need: many agents
    /// may be behind one address.
    pub(super) fn crowded(&self) -> bool {
        if self.owners.is_empty() {
            return false;
        }
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        self.owners.iter().any(|(owner, most)| open.get(owner).is_some_and(|count| *count > most / 2))
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        for (owner, _) in &self.owners {
            if let Some(count) = open.get_mut(owner) {
                *count = count.saturating_sub(1);
                if *count == 0 {
                    open.remove(owner);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn an_address_has_its_share_and_what_it_gives_back() {
        let shares = Shares::new(2, 100, |ip| ip == "192.0.2.9".parse::<IpAddr>().unwrap());
        let first = shares.take(ip("192.0.2.1")).unwrap();
        let second = shares.take(ip("::ffff:192.0.2.1")).unwrap();
        assert!(shares.take(ip("192.0.2.1")).is_none());
        let other = shares.take(ip("192.0.2.2")).unwrap();
        drop(first);
        let third = shares.take(ip("192.0.2.1")).unwrap();
        assert!(shares.take(ip("192.0.2.1")).is_none());
        let proxied: Vec<_> = (0..10).map(|_| shares.take(ip("192.0.2.9")).unwrap()).collect();
        let sixth = shares.take(ip("2001:db8::1")).unwrap();
        drop((second, other, third, proxied, sixth));
        assert!(shares.open.lock().unwrap().is_empty(), "nothing is kept of those who left");
    }

    #[test]
    fn a_fleet_in_one_ipv6_network_has_a_share_for_each_address() {
        let shares = Shares::new(2, 4096, |_| false);
        let held: Vec<_> = (0..1000).map(|n| shares.take(ip(&format!("2001:db8::{n:x}"))).unwrap()).collect();
        let _second = shares.take(ip("2001:db8::7")).unwrap();
        assert!(shares.take(ip("2001:db8::7")).is_none(), "one address of it has no more than any other");
        assert!(!held[0].crowded());
    }

    #[test]
    fn one_ipv6_network_never_holds_everything() {
        let shares = Shares::new(128, 8, |_| false);
        let held: Vec<_> = (0..6).map(|n| shares.take(ip(&format!("2001:db8::{n:x}"))).unwrap()).collect();
        assert!(shares.take(ip("2001:db8::ffff:2")).is_none());
        assert!(shares.take(ip("2001:db8:0:1::1")).is_some());
        assert!(shares.take(ip("192.0.2.1")).is_some());
        drop(held);
        assert!(shares.take(ip("2001:db8::ffff:2")).is_some());
    }

    #[test]
    fn past_half_of_a_share_it_is_crowded_until_it_is_not() {
        let shares = Shares::new(4, 8, |ip| ip.is_loopback());
        let nat: Vec<_> = (0..2).map(|_| shares.take(ip("192.0.2.1")).unwrap()).collect();
        let other = shares.take(ip("192.0.2.2")).unwrap();
        assert!(!nat[0].crowded());
        let third = shares.take(ip("192.0.2.1")).unwrap();
        assert!(nat[0].crowded() && third.crowded() && !other.crowded());
        drop(third);
        assert!(!nat[0].crowded());

        let network: Vec<_> = (0..4).map(|n| shares.take(ip(&format!("fd00::{n}"))).unwrap()).collect();
        assert!(network[0].crowded(), "4 of its network's 6");
        let own: Vec<_> = (0..10).map(|_| shares.take(ip("::1")).unwrap()).collect();
        assert!(!own[0].crowded());
    }
}
