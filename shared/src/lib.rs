//! What agent and controller must agree on.
//!
//! [`contract`] is the wire contract (Beskar7 v4.2 plus Farrier's additive parts), [`resource`] the objects
//! operators write and read, [`lifecycle`] the rules
//! that move hosts and machines. Nothing in this crate performs I/O, reads a clock, or keeps global state.

#![forbid(unsafe_code)]

pub mod contract;
pub mod lifecycle;
pub mod resource;
