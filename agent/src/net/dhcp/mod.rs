//! A DHCP client: a pure state machine ([`machine`]), the packets it speaks ([`wire`]), what it obtains
//! ([`Lease`]), and the edge that runs it on an interface ([`client`]).

pub mod client;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod lease;
pub mod machine;
mod message;
mod reply;
pub mod wire;

pub use lease::Lease;

#[cfg(test)]
mod tests;
