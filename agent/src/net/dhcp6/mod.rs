//! A DHCPv6 client (RFC 8415): a pure state machine ([`machine`]), the messages it sends and reads, what it obtains
//! ([`Lease6`]), and the edge that runs it on an interface ([`client`]).

pub mod client;
mod event;
mod lease;
pub mod machine;
mod message;
pub mod reply;
mod state;

pub use lease::Lease6;

#[cfg(test)]
mod tests;
