//! What a server gave, read out of its answer.

use std::net::Ipv6Addr;
use std::time::Duration;

use super::reply::Answer;

/// A time of all ones is one without end (RFC 8415, section 7.7).
const INFINITE: u32 = u32::MAX;
/// Leases shorter than this, in seconds, would have us renew all the time. Longer ones are kept to: who holds on to an
/// address for longer than it was given may share it with the next.
const MIN_LEASE: u32 = 10;

/// Addresses for a time, with the settings that came along; or settings alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease6 {
    /// The server that gave it, by DUID.
    pub server: Vec<u8>,
    /// Addresses; none where only settings were asked for.
    pub addresses: Vec<Ipv6Addr>,
    /// Name servers.
    pub dns: Vec<Ipv6Addr>,
    /// Domains to complete short names with.
    pub search: Vec<String>,
    /// Time servers.
    pub ntp: Vec<Ipv6Addr>,
    /// How long the addresses last from the question on; `None` for ever.
    pub duration: Option<Duration>,
    /// When to start renewing, from the question on.
    pub renew_after: Duration,
    /// When to start asking any server, from the question on.
    pub rebind_after: Duration,
}

impl Lease6 {
    /// What an answer gives.
    pub(super) fn from_answer(answer: &Answer) -> Self {
        let least = |time: fn(&super::reply::Leased) -> u32| answer.addresses.iter().map(time).min();
        let valid = least(|a| a.valid).unwrap_or(INFINITE).max(MIN_LEASE);
        let preferred = least(|a| a.preferred).unwrap_or(INFINITE).clamp(MIN_LEASE, valid);
        let (renew, rebind) = timers(preferred, valid, answer.t1, answer.t2);
        let seconds = |n: u32| Duration::from_secs(n.into());
        Self {
            server: answer.server.clone(),
            addresses: answer.addresses.iter().map(|a| a.address).collect(),
            dns: answer.dns.clone(),
            search: answer.search.clone(),
            ntp: answer.ntp.clone(),
            duration: (valid != INFINITE).then(|| seconds(valid)),
            renew_after: seconds(renew),
            rebind_after: seconds(rebind),
        }
    }
}

/// T1 and T2: as the server says when they are in order, else half and four fifths of the preferred time
/// (RFC 8415, section 21.4).
fn timers(preferred: u32, valid: u32, t1: u32, t2: u32) -> (u32, u32) {
    if 0 < t1 && t1 < t2 && t2 < valid { (t1, t2) } else { (preferred / 2, preferred / 5 * 4) }
}
