//! What the network told us, as plain data.

use std::net::Ipv4Addr;
use std::time::Duration;

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

/// The addresses one interface gets, by DHCP or by hand.
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

/// The network as it was brought up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkConfig {
    /// Interface name, such as `eth0`.
    pub interface: String,
    /// Its index.
    pub index: u32,
    /// Its address on the wire.
    pub mac: MacAddress,
    /// What was configured on it.
    pub plan: AddressPlan,
    /// The lease behind the plan; `None` for a static address.
    pub lease: Option<super::dhcp::Lease>,
    /// How long it took.
    pub took: Duration,
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
    fn masks_of_every_length() {
        assert_eq!(mask(0), 0);
        assert_eq!(mask(24), 0xffff_ff00);
        assert_eq!(mask(32), u32::MAX);
        assert_eq!(mask(200), u32::MAX);
    }
}
