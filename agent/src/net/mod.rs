//! From bare interfaces to a configured network: choosing the interface, DHCP, static addresses, names.

mod bring_up;
pub mod config;
pub mod dhcp;
mod dns;
pub mod links;
mod netlink;

pub use bring_up::{NetError, Network, Wanted, bring_up};
pub use config::{AddressPlan, NetworkConfig, Route};
pub use dns::{DnsError, resolver};
pub use netlink::NetlinkError;
