//! From bare interfaces to a configured network: choosing the interface, DHCP, static addresses, names.

pub mod config;
pub mod dhcp;
mod dns;

pub use config::{AddressPlan, NetworkConfig, Route};
pub use dns::resolver;
