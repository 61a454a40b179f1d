//! Redfish over HTTP.
//!
//! Requests go to the one origin the access policy allowed: redirects are not followed, links to other origins
//! are refused, proxies of the environment are ignored. Each BMC is asked one thing at a time.

mod actions;
mod addresses;
mod classify;
mod client;
mod connector;
mod dns;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod gate;
mod given;
mod known;
mod model;
mod quirks;
#[cfg(test)]
mod recorded;
#[cfg(test)]
mod secure_tests;
mod sessions;
#[cfg(test)]
mod simulator;
#[cfg(test)]
mod tests;
mod transport;

pub use connector::{ProxyError, RedfishConnector, parse_proxy};
