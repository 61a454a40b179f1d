//! IPv6 as routers advertise it. The kernel makes the addresses and detects duplicates (`settings` tells it to);
//! what it does not keep (name servers, whether to ask DHCPv6) is read out of the advertisements here.

pub mod advertisement;
pub(crate) mod names;
mod routers;
mod settings;
mod socket;

pub use routers::Routers;
pub(super) use settings::{Autoconf, disable, prepare, use_default_routers};
pub(super) use socket::RouterSocket;
