//! What the network told us, as plain data.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use farrier_shared::contract::options::StaticIp6;
use farrier_shared::contract::{MacAddress, StaticIp};

/// A route to a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// Network address.
    pub destination: Ipv4Addr,
    /// Prefix length, 0..=32.
    pub prefix_len: u8,
    /// Next hop; `0.0.0.0` means the destination is on the link itself (RFC 3442).
    pub via: Ipv4Addr,
}

/// The IPv4 settings of one interface, by DHCP or by hand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressPlan {
    /// Address of the interface.
    pub address: Ipv4Addr,
    /// Prefix length, 0..=32.
    pub prefix_len: u8,
    /// Every route, the default route among them.
    pub routes: Vec<Route>,
    /// Name servers in order of preference.
    pub dns: Vec<Ipv4Addr>,
    /// Domains to complete short names with.
    pub search: Vec<String>,
    /// Time servers.
    pub ntp: Vec<Ipv4Addr>,
    /// Link MTU in bytes, when the network names one.
    pub mtu: Option<u16>,
}

/// An IPv6 address to configure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address6 {
    /// The address.
    pub address: Ipv6Addr,
    /// Prefix length, 1..=128.
    pub prefix_len: u8,
}

/// The IPv6 settings of one interface: by routers, by DHCPv6, or by hand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ipv6Plan {
    /// Addresses to configure: leased, or given by hand.
    pub addresses: Vec<Address6>,
    /// Addresses the kernel made of the routers' prefixes.
    pub autoconf: Vec<Ipv6Addr>,
    /// Next hop to everywhere.
    pub gateway: Option<Ipv6Addr>,
    /// Name servers in order of preference.
    pub dns: Vec<Ipv6Addr>,
    /// Domains to complete short names with.
    pub search: Vec<String>,
    /// Time servers.
    pub ntp: Vec<Ipv6Addr>,
}

/// The network as it was brought up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkConfig {
    /// Interface name, such as `eth0`.
    pub interface: String,
    /// Its index.
    pub index: u32,
    /// Its address on the wire.
    pub mac: MacAddress,
    /// Its IPv4 settings.
    pub v4: Option<AddressPlan>,
    /// The lease behind them; `None` for a static address.
    pub lease: Option<super::dhcp::Lease>,
    /// Its IPv6 settings.
    pub v6: Option<Ipv6Plan>,
    /// How long it took.
    pub took: Duration,
}

impl NetworkConfig {
    /// Name servers: those of IPv4 first, since a network that has both rarely serves names by IPv6 alone.
    pub fn dns(&self) -> Vec<IpAddr> {
        both(&self.v4, |p| &p.dns, &self.v6, |p| &p.dns)
    }

    /// Time servers the network named.
    pub fn ntp(&self) -> Vec<IpAddr> {
        both(&self.v4, |p| &p.ntp, &self.v6, |p| &p.ntp)
    }

    /// Domains to complete short names with, each once.
    pub fn search(&self) -> Vec<String> {
        let v4 = self.v4.iter().flat_map(|p| &p.search);
        let mut domains: Vec<String> = Vec::new();
        for domain in v4.chain(self.v6.iter().flat_map(|p| &p.search)) {
            if !domains.contains(domain) {
                domains.push(domain.clone());
            }
        }
        domains
    }

    /// Every address of the interface that is in use.
    pub fn addresses(&self) -> Vec<IpAddr> {
        let v4 = self.v4.iter().map(|p| IpAddr::V4(p.address));
        v4.chain(self.v6.iter().flat_map(Ipv6Plan::all).map(IpAddr::V6)).collect()
    }

    /// Whether there is a way out of the link.
    pub fn has_gateway(&self) -> bool {
        self.v4.as_ref().is_some_and(AddressPlan::has_gateway)
            || self.v6.as_ref().is_some_and(|p| p.gateway.is_some())
    }
}

fn both<A, B>(
    a: &Option<A>,
    of_a: impl Fn(&A) -> &Vec<Ipv4Addr>,
    b: &Option<B>,
    of_b: impl Fn(&B) -> &Vec<Ipv6Addr>,
) -> Vec<IpAddr> {
    let v4 = a.iter().flat_map(of_a).copied().map(IpAddr::V4);
    v4.chain(b.iter().flat_map(of_b).copied().map(IpAddr::V6)).collect()
}

impl AddressPlan {
    /// The plan of `beskar7.ip`.
    pub fn from_static(ip: &StaticIp) -> Self {
        let default = |via| Route { destination: Ipv4Addr::UNSPECIFIED, prefix_len: 0, via };
        Self {
            address: ip.address,
            prefix_len: ip.prefix_len,
            routes: ip.gateway.map(default).into_iter().collect(),
            dns: ip.dns.into_iter().collect(),
            search: Vec::new(),
            ntp: Vec::new(),
            mtu: None,
        }
    }

    /// Whether `address` is inside this interface's own subnet.
    pub fn on_link(&self, address: Ipv4Addr) -> bool {
        contains(self.address, self.prefix_len, address)
    }

    /// Whether any route, or the subnet itself, leads to `address`.
    pub fn reaches(&self, address: Ipv4Addr) -> bool {
        self.on_link(address) || self.routes.iter().any(|r| contains(r.destination, r.prefix_len, address))
    }

    /// Whether there is a way out of the subnet.
    pub fn has_gateway(&self) -> bool {
        self.routes.iter().any(|r| r.prefix_len == 0)
    }

    /// The next hop to everywhere else, where it is a router.
    pub fn gateway(&self) -> Option<Ipv4Addr> {
        let default = self.routes.iter().find(|r| r.prefix_len == 0 && !r.via.is_unspecified());
        default.map(|r| r.via)
    }
}

impl Ipv6Plan {
    /// The plan of a static `farrier.ip6`.
    pub fn from_static(ip: &StaticIp6) -> Self {
        Self {
            addresses: vec![Address6 { address: ip.address, prefix_len: ip.prefix_len }],
            gateway: ip.gateway,
            dns: ip.dns.into_iter().collect(),
            ..Self::default()
        }
    }

    /// Every address, whoever configured it.
    pub fn all(&self) -> impl Iterator<Item = Ipv6Addr> {
        self.addresses.iter().map(|a| a.address).chain(self.autoconf.iter().copied())
    }

    /// Whether `address` is on the link for certain. Prefixes that routers advertise are the kernel's to know.
    pub fn on_link(&self, address: Ipv6Addr) -> bool {
        address.is_unicast_link_local()
            || self.addresses.iter().any(|own| {
                let mask = u128::MAX.checked_shl(128 - u32::from(own.prefix_len.min(128))).unwrap_or(0);
                u128::from(own.address) & mask == u128::from(address) & mask
            })
    }
}

/// The netmask of a prefix length; more than 32 counts as 32.
pub fn mask(prefix_len: u8) -> u32 {
    u32::MAX.checked_shl(32 - u32::from(prefix_len.min(32))).unwrap_or(0)
}

fn contains(network: Ipv4Addr, prefix_len: u8, address: Ipv4Addr) -> bool {
    let mask = mask(prefix_len);
    u32::from(network) & mask == u32::from(address) & mask
}

#[cfg(test)]
mod tests {
    use farrier_shared::contract::options::Ip6;

    use super::*;

    #[test]
    fn a_static_address_becomes_a_plan_with_a_default_route() {
        let plan = AddressPlan::from_static(&"10.0.0.5::10.0.0.1:24:10.0.0.2".parse().unwrap());
        assert!(plan.has_gateway() && plan.reaches(Ipv4Addr::new(8, 8, 8, 8)));
        assert!(plan.on_link(Ipv4Addr::new(10, 0, 0, 77)) && !plan.on_link(Ipv4Addr::new(10, 0, 1, 77)));
        assert_eq!(plan.dns, [Ipv4Addr::new(10, 0, 0, 2)]);
    }

    #[test]
    fn without_a_gateway_only_the_subnet_is_reached() {
        let plan = AddressPlan::from_static(&"10.0.0.5:::24".parse().unwrap());
        assert!(!plan.has_gateway() && !plan.reaches(Ipv4Addr::new(8, 8, 8, 8)));
    }

    #[test]
    fn a_static_ipv6_address_knows_its_link() {
        let Ok(Ip6::Static(ip)) = "fd00:1::5/64,fe80::1,fd00:1::53".parse() else { panic!("static") };
        let plan = Ipv6Plan::from_static(&ip);
        for (address, on_link) in [("fe80::9", true), ("fd00:1::9", true), ("fd00:2::9", false)] {
            assert_eq!(plan.on_link(address.parse().unwrap()), on_link, "{address}");
        }
        let host = Ipv6Plan {
            addresses: vec![Address6 { address: ip.address, prefix_len: 128 }],
            ..Ipv6Plan::default()
        };
        assert!(host.on_link(ip.address) && !host.on_link("fd00:1::9".parse().unwrap()));
    }

    #[test]
    fn both_families_are_told_of_ipv4_first() {
        let Ok(Ip6::Static(ip)) = "fd00:1::5/64,fe80::1,fd00:1::53".parse() else { panic!("static") };
        let config = NetworkConfig {
            interface: "eth0".into(),
            index: 2,
            mac: MacAddress::from_bytes([2, 0, 0, 0, 0, 1]),
            v4: Some(AddressPlan::from_static(&"10.0.0.5:::24:10.0.0.2".parse().unwrap())),
            lease: None,
            v6: Some(Ipv6Plan { search: vec!["lab".into(), "lab".into()], ..Ipv6Plan::from_static(&ip) }),
            took: Duration::ZERO,
        };
        let texts = |list: Vec<IpAddr>| list.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(texts(config.dns()), ["10.0.0.2", "fd00:1::53"]);
        assert_eq!(texts(config.addresses()), ["10.0.0.5", "fd00:1::5"]);
        assert_eq!(config.search(), ["lab"]);
        assert!(config.has_gateway(), "by IPv6");
    }

    #[test]
    fn masks_of_every_length() {
        assert_eq!(mask(0), 0);
        assert_eq!(mask(24), 0xffff_ff00);
        assert_eq!(mask(32), u32::MAX);
        assert_eq!(mask(200), u32::MAX);
    }
}
