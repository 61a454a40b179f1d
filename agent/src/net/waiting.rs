//! How long one interface keeps the others waiting, while the controller is looked for through all of them.

use std::time::Duration;

use super::carrier::Carrier;
use super::family::Family;

/// How long the second kind of address may take once there is one: the port forwards then, so whoever gives it is
/// heard at once or not at all. Three solicitations of a router, four seconds apart, are twelve (RFC 4861,
/// section 10); four of a DHCP server are seven to ten.
const SECOND_FAMILY: Duration = Duration::from_secs(15);
/// How long a link may take that has no carrier. It may still win later, as long as others are looked at.
const NO_LINK: Duration = Duration::from_secs(30);

/// What may still come on one interface. Times are since the start of the search.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    pending: Vec<Family>,
    /// When the first address came.
    address_at: Option<Duration>,
}

impl Waiting {
    pub(super) fn new(families: impl Iterator<Item = Family>) -> Self {
        Self { pending: families.collect(), address_at: None }
    }

    /// There is an address.
    pub(super) fn heard(&mut self, family: Family, now: Duration) {
        self.ended(family);
        self.address_at = self.address_at.or(Some(now));
    }

    /// There will be no address.
    pub(super) fn ended(&mut self, family: Family) {
        self.pending.retain(|pending| *pending != family);
    }

    /// The address is gone, and looked for again.
    pub(super) fn lost(&mut self, family: Family) {
        self.ended(family);
        self.pending.push(family);
        self.address_at = None;
    }

    /// Whether all is known that there will be.
    pub(super) fn is_complete(&self) -> bool {
        self.pending.is_empty()
    }

    /// Whether nothing else is to be expected soon. A port with a carrier on which nothing was heard yet may be
    /// learning: it is waited for.
    pub(super) fn is_over(&self, carrier: Carrier, now: Duration) -> bool {
        self.is_complete()
            || self.address_at.is_some_and(|at| now >= at + SECOND_FAMILY)
            || !carrier.up && now >= NO_LINK
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UP: Carrier = Carrier { up: true, times: 1 };
    const DOWN: Carrier = Carrier { up: false, times: 0 };

    fn seconds(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    fn both() -> Waiting {
        Waiting::new([Family::V4, Family::V6].into_iter())
    }

    #[test]
    fn ipv6_that_nobody_offers_is_waited_for_as_long_as_routers_are_solicited() {
        let mut waiting = both();
        waiting.heard(Family::V4, seconds(3));
        assert!(!waiting.is_over(UP, seconds(17)) && waiting.is_over(UP, seconds(18)));
        assert!(!waiting.is_complete());
        waiting.ended(Family::V6);
        assert!(waiting.is_over(UP, seconds(4)) && waiting.is_complete());
    }

    #[test]
    fn a_port_that_may_be_learning_is_waited_for_and_one_without_a_link_is_not() {
        assert!(!both().is_over(UP, seconds(119)));
        assert!(!both().is_over(DOWN, seconds(29)) && both().is_over(DOWN, seconds(30)));
    }

    #[test]
    fn an_address_that_is_lost_is_waited_for_again() {
        let mut waiting = both();
        waiting.heard(Family::V4, seconds(3));
        waiting.ended(Family::V6);
        waiting.lost(Family::V4);
        assert!(!waiting.is_over(UP, seconds(100)) && !waiting.is_complete());
        waiting.heard(Family::V4, seconds(101));
        assert!(waiting.is_complete());
    }
}
