//! What all routers of a link say together, now.

use std::net::Ipv6Addr;
use std::time::Duration;

use super::advertisement::{Advertisement, Lasting, Preference};

/// Most routers, name servers and domains kept: whoever can send advertisements must not fill the memory.
const MAX: usize = 8;

#[derive(Clone, Debug)]
struct Router {
    address: Ipv6Addr,
    preference: Preference,
    managed: bool,
    other: bool,
    /// When it ends to serve as default router; [`None`] when it does not serve.
    serves_until: Option<Duration>,
}

#[derive(Clone, Debug)]
struct Until<T> {
    value: T,
    end: Duration,
}

/// The routers heard so far. Times are durations since a start of the caller's choice.
#[derive(Clone, Debug, Default)]
pub struct Routers {
    routers: Vec<Router>,
    dns: Vec<Until<Ipv6Addr>>,
    search: Vec<Until<String>>,
}

impl Routers {
    /// Takes an advertisement in. What a router does not repeat stays until its time is over (RFC 4861,
    /// section 6.3.4).
    pub fn heard(&mut self, said: &Advertisement, now: Duration) {
        let serves_until =
            (said.lifetime > 0).then(|| now.saturating_add(Duration::from_secs(said.lifetime.into())));
        let router = Router {
            address: said.router,
            preference: said.preference,
            managed: said.managed,
            other: said.other,
            serves_until,
        };
        let room = self.routers.len() < MAX;
        match self.routers.iter_mut().find(|r| r.address == said.router) {
            Some(known) => *known = router,
            None if room => self.routers.push(router),
            None => {}
        }
        for server in &said.dns {
            keep(&mut self.dns, server, now);
        }
        for domain in &said.search {
            keep(&mut self.search, domain, now);
        }
    }

    /// Whether any router was heard at all.
    pub fn any(&self) -> bool {
        !self.routers.is_empty()
    }

    /// Default routers, the preferred first, else in the order they were heard.
    pub fn gateways(&self, now: Duration) -> Vec<Ipv6Addr> {
        let mut serving: Vec<&Router> =
            self.routers.iter().filter(|r| r.serves_until.is_some_and(|end| now < end)).collect();
        serving.sort_by_key(|r| std::cmp::Reverse(r.preference));
        serving.into_iter().map(|r| r.address).collect()
    }

    /// Whether addresses come by DHCPv6.
    pub fn managed(&self) -> bool {
        self.routers.iter().any(|r| r.managed)
    }

    /// Whether other settings come by DHCPv6.
    pub fn other(&self) -> bool {
        self.routers.iter().any(|r| r.other)
    }

    /// Name servers, in the order they were heard.
    pub fn dns(&self, now: Duration) -> Vec<Ipv6Addr> {
        self.dns.iter().filter(|s| now < s.end).map(|s| s.value).collect()
    }

    /// Domains to complete short names with.
    pub fn search(&self, now: Duration) -> Vec<String> {
        self.search.iter().filter(|s| now < s.end).map(|s| s.value.clone()).collect()
    }
}

fn keep<T: Clone + PartialEq>(list: &mut Vec<Until<T>>, said: &Lasting<T>, now: Duration) {
    let end = match said.seconds {
        u32::MAX => Duration::MAX,
        seconds => now.saturating_add(Duration::from_secs(seconds.into())),
    };
    list.retain(|known| now < known.end);
    let room = list.len() < MAX;
    match list.iter_mut().find(|known| known.value == said.value) {
        Some(known) => known.end = end,
        None if room && said.seconds > 0 => list.push(Until { value: said.value.clone(), end }),
        None => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    fn said(router: &str, lifetime: u16) -> Advertisement {
        Advertisement {
            router: router.parse().unwrap(),
            lifetime,
            preference: Preference::Medium,
            managed: false,
            other: false,
            mtu: None,
            dns: Vec::new(),
            search: Vec::new(),
        }
    }

    fn texts(addresses: &[Ipv6Addr]) -> Vec<String> {
        addresses.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_preferred_router_comes_first_and_one_that_stops_serving_goes() {
        let mut routers = Routers::default();
        assert!(!routers.any());
        routers.heard(&said("fe80::1", 1800), seconds(0));
        routers.heard(&Advertisement { preference: Preference::High, ..said("fe80::2", 60) }, seconds(1));
        routers.heard(&said("fe80::3", 0), seconds(2));
        assert_eq!(texts(&routers.gateways(seconds(3))), ["fe80::2", "fe80::1"]);
        assert_eq!(texts(&routers.gateways(seconds(61))), ["fe80::1"], "its time is over");
        routers.heard(&said("fe80::1", 0), seconds(62));
        assert!(routers.gateways(seconds(62)).is_empty() && routers.any());
    }

    #[test]
    fn what_is_not_repeated_stays_until_its_time_is_over() {
        let mut routers = Routers::default();
        let server = |text: &str, seconds| Lasting { value: text.parse().unwrap(), seconds };
        let dns = vec![server("fd00::1", 100), server("fd00::2", u32::MAX)];
        routers.heard(&Advertisement { dns, ..said("fe80::1", 1800) }, seconds(0));
        routers.heard(&said("fe80::1", 1800), seconds(50));
        assert_eq!(texts(&routers.dns(seconds(99))), ["fd00::1", "fd00::2"]);
        assert_eq!(texts(&routers.dns(seconds(100))), ["fd00::2"]);
        let dns = vec![server("fd00::2", 0)];
        routers.heard(&Advertisement { dns, ..said("fe80::1", 1800) }, seconds(101));
        assert!(routers.dns(seconds(101)).is_empty(), "withdrawn");
    }

    #[test]
    fn flags_are_those_of_the_last_word_of_each_router() {
        let mut routers = Routers::default();
        routers.heard(&Advertisement { managed: true, ..said("fe80::1", 1800) }, seconds(0));
        routers.heard(&Advertisement { other: true, ..said("fe80::2", 1800) }, seconds(0));
        assert!(routers.managed() && routers.other());
        routers.heard(&said("fe80::1", 1800), seconds(1));
        assert!(!routers.managed() && routers.other());
    }

    #[test]
    fn a_flood_of_routers_is_not_kept() {
        let mut routers = Routers::default();
        for n in 1..100 {
            let dns = vec![
                Lasting { value: Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, n), seconds: 60 };
                usize::from(n)
            ];
            routers.heard(&Advertisement { dns, ..said(&format!("fe80::{n:x}"), 1800) }, seconds(0));
        }
        assert_eq!((routers.gateways(seconds(1)).len(), routers.dns(seconds(1)).len()), (MAX, MAX));
    }
}
