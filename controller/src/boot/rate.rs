//! How often one client address may ask for a boot script.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Requests a second, in the long run.
const PER_SECOND: f64 = 1.0;
/// Requests at once.
const BURST: f64 = 5.0;
/// An address not heard of for this long is forgotten.
const IDLE: Duration = Duration::from_secs(5 * 60);
/// Addresses remembered; beyond that those idle longest are forgotten, so that whoever has many addresses cannot
/// fill the memory.
const MAX_CLIENTS: usize = 10_000;
/// Addresses forgotten at a time then: finding them looks at all, which must not happen at each request.
const FORGOTTEN: usize = MAX_CLIENTS / 4;

/// A token bucket for each client address.
#[derive(Debug, Default)]
pub struct RateLimit {
    clients: Mutex<Clients>,
}

#[derive(Debug, Default)]
struct Clients {
    buckets: HashMap<IpAddr, Bucket>,
    swept: Duration,
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    tokens: f64,
    at: Duration,
}

impl RateLimit {
    /// Whether `client` may ask now; `now` is monotonic.
    pub fn admit(&self, client: IpAddr, now: Duration) -> bool {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        clients.make_room(client, now);
        let bucket = clients.buckets.entry(client).or_insert(Bucket { tokens: BURST, at: now });
        let refill = now.saturating_sub(bucket.at).as_secs_f64() * PER_SECOND;
        bucket.tokens = (bucket.tokens + refill).min(BURST);
        bucket.at = now;
        let admitted = bucket.tokens >= 1.0;
        if admitted {
            bucket.tokens -= 1.0;
        }
        admitted
    }
}

impl Clients {
    fn make_room(&mut self, client: IpAddr, now: Duration) {
        // Not at each request: a sweep looks at every address.
        if now.saturating_sub(self.swept) >= IDLE / 5 {
            self.buckets.retain(|_, bucket| now.saturating_sub(bucket.at) < IDLE);
            self.swept = now;
        }
        if self.buckets.len() >= MAX_CLIENTS && !self.buckets.contains_key(&client) {
            let mut by_age: Vec<(Duration, IpAddr)> =
                self.buckets.iter().map(|(ip, bucket)| (bucket.at, *ip)).collect();
            by_age.select_nth_unstable(FORGOTTEN);
            for (_, ip) in by_age.iter().take(FORGOTTEN) {
                self.buckets.remove(ip);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(n: u32) -> IpAddr {
        std::net::Ipv4Addr::from(n).into()
    }

    #[test]
    fn five_at_once_then_one_a_second_and_each_client_for_itself() {
        let limit = RateLimit::default();
        let at = Duration::from_millis;
        for _ in 0..5 {
            assert!(limit.admit(ip(1), at(0)));
        }
        assert!(!limit.admit(ip(1), at(0)));
        assert!(limit.admit(ip(2), at(0)));
        assert!(!limit.admit(ip(1), at(900)));
        assert!(limit.admit(ip(1), at(1900)));
        assert!(!limit.admit(ip(1), at(1950)));
    }

    #[test]
    fn idle_clients_are_forgotten_and_the_map_stays_bounded() {
        let limit = RateLimit::default();
        let known = || limit.clients.lock().unwrap().buckets.len();
        for n in 0..20_000 {
            limit.admit(ip(n), Duration::from_millis(u64::from(n)));
            assert!(known() <= MAX_CLIENTS);
        }
        assert!(known() >= MAX_CLIENTS - FORGOTTEN);
        assert!(limit.clients.lock().unwrap().buckets.contains_key(&ip(15_000)));
        limit.admit(ip(7), Duration::from_secs(3600));
        assert_eq!(limit.clients.lock().unwrap().buckets.len(), 1);
    }
}
