//! From bare interfaces to a configured network: devices on top of links, addresses of both families by DHCP, by
//! routers or by hand, names; and keeping all that while a run lasts.
//!
//! `stack` makes the devices, `family` obtains what each needs, `contest` decides which of them leads to the
//! controller, `trial` has the kernel know it, `keep` follows what changes later.

mod arp;
mod auto6;
mod bring_up;
mod carrier;
pub mod config;
mod contest;
pub mod dhcp;
pub mod dhcp6;
mod dns;
mod family;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
pub(crate) mod hear;
pub mod ipv6;
mod jitter;
mod keep;
pub mod links;
mod lookup;
mod netlink;
mod on_interface;
mod reach;
mod routes;
mod stack;
mod trial;
mod waiting;
mod wanted;

pub use bring_up::{NetError, Network, bring_up};
pub use config::{Address6, AddressPlan, Ipv6Plan, NetworkConfig, Route};
pub use dns::{DnsError, resolver};
pub use netlink::NetlinkError;
pub use wanted::Wanted;
