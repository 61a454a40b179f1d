//! What a server leased, read out of its ACK.

use std::net::Ipv4Addr;
use std::time::Duration;

use dhcproto::v4::{DhcpOption, Message, OptionCode};

use crate::net::config::{AddressPlan, Route, mask};

/// Smallest MTU a server may set: less is a broken server, and IPv4 must carry 576 bytes whole (RFC 791).
const MIN_MTU: u16 = 576;
/// A lease time of all ones is one without end (RFC 2131, section 3.3).
const INFINITE: u32 = u32::MAX;
/// Leases shorter than this, in seconds, would have us renew all the time. Longer ones are kept to: who holds on to an
/// address for longer than it was given may share it with the next.
const MIN_LEASE: u32 = 10;
/// Most routes taken: each is set one by one.
const MAX_ROUTES: usize = 64;

/// An address for a time, with everything the server said about its network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The server that gave it.
    pub server: Ipv4Addr,
    /// What to configure.
    pub plan: AddressPlan,
    /// How long it lasts from the request on; `None` for ever.
    pub duration: Option<Duration>,
    /// When to start renewing, from the request on.
    pub renew_after: Duration,
    /// When to start asking any server, from the request on.
    pub rebind_after: Duration,
}

impl Lease {
    /// Reads an OFFER or ACK; `None` when it names no usable address or no server.
    pub fn from_message(message: &Message) -> Option<Self> {
        let address = message.yiaddr();
        if address.is_unspecified()
            || address.is_broadcast()
            || address.is_multicast()
            || address.is_loopback()
        {
            return None;
        }
        let opts = message.opts();
        let get = |code| opts.get(code);
        let server = match get(OptionCode::ServerIdentifier) {
            Some(DhcpOption::ServerIdentifier(ip)) => *ip,
            _ => return None,
        };
        let prefix_len = match get(OptionCode::SubnetMask) {
            Some(DhcpOption::SubnetMask(m)) => prefix_of(*m).unwrap_or_else(|| classful_prefix(address)),
            _ => classful_prefix(address),
        };
        let seconds = match get(OptionCode::AddressLeaseTime) {
            Some(DhcpOption::AddressLeaseTime(s)) => (*s).max(MIN_LEASE),
            _ => INFINITE,
        };
        let (renew, rebind) = timers(
            seconds,
            match get(OptionCode::Renewal) {
                Some(DhcpOption::Renewal(s)) => Some(*s),
                _ => None,
            },
            match get(OptionCode::Rebinding) {
                Some(DhcpOption::Rebinding(s)) => Some(*s),
                _ => None,
            },
        );
        Some(Self {
            server,
            plan: AddressPlan {
                address,
                prefix_len,
                routes: routes(message),
                dns: match get(OptionCode::DomainNameServer) {
                    Some(DhcpOption::DomainNameServer(list)) => usable(list),
                    _ => Vec::new(),
                },
                search: search(message),
                ntp: match get(OptionCode::NtpServers) {
                    Some(DhcpOption::NtpServers(list)) => usable(list),
                    _ => Vec::new(),
                },
                mtu: match get(OptionCode::InterfaceMtu) {
                    Some(DhcpOption::InterfaceMtu(mtu)) if *mtu >= MIN_MTU => Some(*mtu),
                    _ => None,
                },
            },
            duration: (seconds != INFINITE).then(|| Duration::from_secs(u64::from(seconds))),
            renew_after: Duration::from_secs(u64::from(renew)),
            rebind_after: Duration::from_secs(u64::from(rebind)),
        })
    }
}

/// T1 and T2: as the server says when they are in order, else half and seven eighths of the lease
/// (RFC 2131, section 4.4.5).
fn timers(lease: u32, t1: Option<u32>, t2: Option<u32>) -> (u32, u32) {
    let default = (lease / 2, lease - lease / 8);
    match (t1, t2) {
        (Some(t1), Some(t2)) if 0 < t1 && t1 < t2 && t2 < lease => (t1, t2),
        (Some(t1), None) if 0 < t1 && t1 < default.1 => (t1, default.1),
        _ => default,
    }
}

/// Option 121 alone when it is given, else option 3 (RFC 3442 forbids mixing the two). One in which no route can be
/// read was not given.
fn routes(message: &Message) -> Vec<Route> {
    let opts = message.opts();
    let classless = match opts.get(OptionCode::ClasslessStaticRoute) {
        Some(DhcpOption::ClasslessStaticRoute(list)) => list.as_slice(),
        _ => &[],
    };
    if !classless.is_empty() {
        return classless
            .iter()
            .take(MAX_ROUTES)
            .map(|(net, via)| Route {
                // Servers are known to leave host bits set; the kernel would refuse such a route.
                destination: Ipv4Addr::from(u32::from(net.addr()) & mask(net.prefix_len())),
                prefix_len: net.prefix_len(),
                via: *via,
            })
            .collect();
    }
    match opts.get(OptionCode::Router) {
        Some(DhcpOption::Router(list)) => usable(list)
            .first()
            .map(|via| Route { destination: Ipv4Addr::UNSPECIFIED, prefix_len: 0, via: *via })
            .into_iter()
            .collect(),
        _ => Vec::new(),
    }
}

/// Option 119, else the single domain of option 15.
fn search(message: &Message) -> Vec<String> {
    let opts = message.opts();
    if let Some(DhcpOption::DomainSearch(list)) = opts.get(OptionCode::DomainSearch) {
        return list.iter().map(|d| d.to_string().trim_end_matches('.').to_owned()).collect();
    }
    match opts.get(OptionCode::DomainName) {
        Some(DhcpOption::DomainName(name)) => vec![name.trim_matches(['\0', '.', ' ']).to_owned()],
        _ => Vec::new(),
    }
    .into_iter()
    .filter(|d| !d.is_empty())
    .collect()
}

/// The addresses that can be a server's, each once.
fn usable(list: &[Ipv4Addr]) -> Vec<Ipv4Addr> {
    let mut out: Vec<Ipv4Addr> = Vec::new();
    for ip in list.iter().filter(|ip| !ip.is_unspecified() && !ip.is_broadcast()) {
        if !out.contains(ip) {
            out.push(*ip);
        }
    }
    out
}

/// Prefix length of a contiguous mask.
fn prefix_of(mask: Ipv4Addr) -> Option<u8> {
    let bits = u32::from(mask);
    let ones = bits.leading_ones();
    (ones > 0 && bits.count_ones() == ones).then(|| u8::try_from(ones).ok()).flatten()
}

/// The prefix the address class implies: what RFC 2131 hosts assume without option 1.
fn classful_prefix(address: Ipv4Addr) -> u8 {
    match address.octets() {
        [0..=127, ..] => 8,
        [128..=191, ..] => 16,
        _ => 24,
    }
}
