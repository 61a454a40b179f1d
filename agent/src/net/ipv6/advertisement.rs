//! Router advertisements (RFC 4861, section 4.2), with routers' preference (RFC 4191) and name servers (RFC 8106).

use std::net::Ipv6Addr;

use super::names;

const IPV6_HEADER: usize = 40;
const ICMPV6: u8 = 58;
const ADVERTISEMENT: u8 = 134;
const FIXED: usize = 16;
/// What a router on the same link sends, and nobody further away can (RFC 4861, section 6.1.2).
const HOP_LIMIT: u8 = 255;
const MANAGED: u8 = 0x80;
const OTHER: u8 = 0x40;
const MTU: u8 = 5;
const RDNSS: u8 = 25;
const DNSSL: u8 = 31;

/// How much a router wants to be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Preference {
    /// Last.
    Low,
    /// As usual.
    Medium,
    /// First.
    High,
}

/// Something with a time it may be used for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lasting<T> {
    /// What.
    pub value: T,
    /// For how long from now on, in seconds; 0 = no longer, all ones = for ever.
    pub seconds: u32,
}

/// What one router says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advertisement {
    /// Its link-local address.
    pub router: Ipv6Addr,
    /// How long it serves as default router, in seconds; 0 = it does not.
    pub lifetime: u16,
    /// How much it wants to be used.
    pub preference: Preference,
    /// Addresses come by DHCPv6.
    pub managed: bool,
    /// Other settings come by DHCPv6.
    pub other: bool,
    /// The link's MTU, in bytes.
    pub mtu: Option<u32>,
    /// Name servers.
    pub dns: Vec<Lasting<Ipv6Addr>>,
    /// Domains to complete short names with.
    pub search: Vec<Lasting<String>>,
}

/// The advertisement in an IPv6 packet; [`None`] for anything else, and for one that must be dropped.
///
/// The checksum is not verified: a packet of a virtual machine on the same host arrives before its checksum was
/// computed, and the kernel drops what is damaged before it makes an address of it.
pub fn read(packet: &[u8]) -> Option<Advertisement> {
    let header = packet.get(..IPV6_HEADER)?;
    if header[0] >> 4 != 6 || header[6] != ICMPV6 || header[7] != HOP_LIMIT {
        return None;
    }
    let source = <[u8; 16]>::try_from(header.get(8..24)?).ok()?;
    let router = Ipv6Addr::from(source);
    let len = usize::from(u16::from_be_bytes([header[4], header[5]]));
    let message = packet.get(IPV6_HEADER..IPV6_HEADER.checked_add(len)?)?;
    let (fixed, mut options) = message.split_at_checked(FIXED)?;
    if fixed[0] != ADVERTISEMENT || fixed[1] != 0 || !router.is_unicast_link_local() {
        return None;
    }
    let mut advertisement = Advertisement {
        router,
        lifetime: u16::from_be_bytes([fixed[6], fixed[7]]),
        preference: match fixed[5] >> 3 & 0b11 {
            0b01 => Preference::High,
            0b11 => Preference::Low,
            // The fourth value is reserved and counts as medium (RFC 4191, section 2.2).
            _ => Preference::Medium,
        },
        managed: fixed[5] & MANAGED != 0,
        other: fixed[5] & OTHER != 0,
        mtu: None,
        dns: Vec::new(),
        search: Vec::new(),
    };
    while let Some((&[kind, units], _)) = options.split_first_chunk() {
        // An option without length makes the whole packet void (RFC 4861, section 4.6).
        let len = usize::from(units) * 8;
        let (option, rest) = options.split_at_checked(len).filter(|_| len > 0)?;
        advertisement.take(kind, option);
        options = rest;
    }
    Some(advertisement)
}

impl Advertisement {
    fn take(&mut self, kind: u8, option: &[u8]) {
        let Some(word) = option.get(4..8).and_then(|w| w.try_into().ok()).map(u32::from_be_bytes) else {
            return;
        };
        let body = option.get(8..).unwrap_or_default();
        match kind {
            MTU => self.mtu = Some(word),
            RDNSS => self.dns.extend(body.chunks_exact(16).filter_map(|bytes| {
                let value = Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?);
                let usable = !value.is_unspecified() && !value.is_multicast() && !value.is_loopback();
                usable.then_some(Lasting { value, seconds: word })
            })),
            DNSSL => {
                let names = names::read(body).into_iter();
                self.search.extend(names.map(|value| Lasting { value, seconds: word }));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ROUTER: &str = "fe80::1";

    fn packet(flags: u8, options: &[u8]) -> Vec<u8> {
        let mut icmp = vec![ADVERTISEMENT, 0, 0, 0, 64, flags, 0x07, 0x08, 0, 0, 0, 0, 0, 0, 0, 0];
        icmp.extend(options);
        let len = u16::try_from(icmp.len()).unwrap().to_be_bytes();
        let mut packet = vec![0x60, 0, 0, 0, len[0], len[1], ICMPV6, HOP_LIMIT];
        packet.extend(ROUTER.parse::<Ipv6Addr>().unwrap().octets());
        packet.extend("ff02::1".parse::<Ipv6Addr>().unwrap().octets());
        packet.extend(icmp);
        packet
    }

    fn dns(seconds: u32, servers: &[&str]) -> Vec<u8> {
        let units = u8::try_from(1 + 2 * servers.len()).unwrap();
        let mut option = vec![RDNSS, units, 0, 0];
        option.extend(seconds.to_be_bytes());
        for server in servers {
            option.extend(server.parse::<Ipv6Addr>().unwrap().octets());
        }
        option
    }

    #[test]
    fn flags_lifetime_and_preference_are_read() {
        let plain = read(&packet(0, &[])).unwrap();
        assert_eq!((plain.router, plain.lifetime), (ROUTER.parse().unwrap(), 1800));
        assert_eq!((plain.managed, plain.other, plain.preference), (false, false, Preference::Medium));
        let all = read(&packet(MANAGED | OTHER | 0b01 << 3, &[])).unwrap();
        assert_eq!((all.managed, all.other, all.preference), (true, true, Preference::High));
        assert_eq!(read(&packet(0b11 << 3, &[])).unwrap().preference, Preference::Low);
        assert_eq!(read(&packet(0b10 << 3, &[])).unwrap().preference, Preference::Medium);
    }

    #[test]
    fn options_are_read_and_unknown_ones_passed_over() {
        let mut options = vec![200, 1, 1, 2, 3, 4, 5, 6, MTU, 1, 0, 0, 0, 0, 5, 0xdc];
        options.extend(dns(600, &["2001:db8::53", "ff02::1", "fe80::53"]));
        options.extend([DNSSL, 3, 0, 0, 0, 0, 2, 88]);
        options.extend(b"\x03lab\x07example\x00\x00\x00\x00");
        let heard = read(&packet(0, &options)).unwrap();
        assert_eq!(heard.mtu, Some(1500));
        let servers: Vec<_> = heard.dns.iter().map(|l| (l.value.to_string(), l.seconds)).collect();
        assert_eq!(servers, [("2001:db8::53".to_owned(), 600), ("fe80::53".to_owned(), 600)]);
        assert_eq!(heard.search, [Lasting { value: "lab.example".to_owned(), seconds: 600 }]);
    }

    #[test]
    fn what_did_not_come_from_a_router_on_the_link_is_dropped() {
        let good = packet(0, &[]);
        let changed = |at: usize, value: u8| {
            let mut packet = good.clone();
            packet[at] = value;
            packet
        };
        for (why, bad) in [
            ("IPv4", changed(0, 0x45)),
            ("not ICMPv6", changed(6, 17)),
            ("came through a router", changed(7, 254)),
            ("not from a link-local address", changed(8, 0x20)),
            ("a solicitation", changed(40, 133)),
            ("code", changed(41, 1)),
            ("shorter than it says", changed(5, 17)),
            ("an option without length", packet(0, &[MTU, 0, 0, 0, 0, 0, 5, 220])),
            ("an option beyond the end", packet(0, &[MTU, 2, 0, 0, 0, 0, 5, 220])),
        ] {
            assert_eq!(read(&bad), None, "{why}");
        }
    }

    proptest! {
        #[test]
        fn any_packet_is_read_without_a_fault(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&bytes);
        }

        #[test]
        fn any_options_are_read_without_a_fault(options in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&packet(0xff, &options));
        }
    }
}
