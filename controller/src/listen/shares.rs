//! How many of a listener's connections one address may hold: the others are for everybody else.

use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};

/// Connections open, by address.
type Counts = Arc<Mutex<HashMap<IpAddr, usize>>>;

/// Connections open by address, and the most one may have. Clones count together.
#[derive(Clone)]
pub struct Shares {
    most: usize,
    exempt: Arc<dyn Fn(IpAddr) -> bool + Send + Sync>,
    open: Counts,
}

impl fmt::Debug for Shares {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shares").field("most", &self.most).finish_non_exhaustive()
    }
}

/// A place taken; given back when dropped.
#[derive(Debug)]
pub(super) struct Share {
    of: Option<(IpAddr, Counts)>,
}

impl Shares {
    /// At most `most` connections at a time for each address that is not exempt.
    pub fn new(most: usize, exempt: impl Fn(IpAddr) -> bool + Send + Sync + 'static) -> Self {
        Self { most, exempt: Arc::new(exempt), open: Arc::default() }
    }

    /// As many as the listener has.
    pub fn unlimited() -> Self {
        Self::new(0, |_| true)
    }

    /// A place for a connection from `peer`, if its address has one left.
    pub(super) fn take(&self, peer: IpAddr) -> Option<Share> {
        let peer = peer.to_canonical();
        if (self.exempt)(peer) {
            return Some(Share { of: None });
        }
        let owner = owner(peer);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let count = open.entry(owner).or_default();
        if *count >= self.most {
            return None;
        }
        *count += 1;
        Some(Share { of: Some((owner, Arc::clone(&self.open))) })
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let Some((owner, open)) = self.of.take() else { return };
        let mut open = open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = open.get_mut(&owner) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                open.remove(&owner);
            }
        }
    }
}

/// Whose address it is: one machine has a whole IPv6 network of 64 bits to choose from (RFC 4291, section 2.5.1).
fn owner(peer: IpAddr) -> IpAddr {
    match peer {
        IpAddr::V4(_) => peer,
        IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from(u128::from(v6) >> 64 << 64)),
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
        let shares = Shares::new(2, |ip| ip == "192.0.2.9".parse::<IpAddr>().unwrap());
        let first = shares.take(ip("192.0.2.1")).unwrap();
        let second = shares.take(ip("::ffff:192.0.2.1")).unwrap();
        assert!(shares.take(ip("192.0.2.1")).is_none());
        let other = shares.take(ip("192.0.2.2")).unwrap();
        drop(first);
        let third = shares.take(ip("192.0.2.1")).unwrap();
        assert!(shares.take(ip("192.0.2.1")).is_none());
        let proxied: Vec<_> = (0..10).map(|_| shares.take(ip("192.0.2.9")).unwrap()).collect();
        drop((second, other, third, proxied));
        assert!(shares.open.lock().unwrap().is_empty(), "nothing is kept of those who left");
    }

    #[test]
    fn addresses_of_one_ipv6_network_share() {
        let shares = Shares::new(1, |_| false);
        let _held = shares.take(ip("2001:db8::1")).unwrap();
        assert!(shares.take(ip("2001:db8::ffff:2")).is_none());
        assert!(shares.take(ip("2001:db8:0:1::1")).is_some());
    }
}
