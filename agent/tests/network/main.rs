//! The network edge against a real kernel and a real DHCP server: two network namespaces joined by veth pairs,
//! dnsmasq in one, the agent's own code in the other.
//!
//! Needs root, `ip` and `dnsmasq`; says so and passes where they are missing, since nothing can be shown there.

#![expect(clippy::unwrap_used, reason = "a lab that cannot be set up fails the test, with the place")]

mod ipv4;
mod ipv6;
mod lab;
