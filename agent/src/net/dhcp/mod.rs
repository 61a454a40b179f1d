//! A DHCP client: a pure state machine, and the packets it speaks.

mod lease;

pub use lease::Lease;
