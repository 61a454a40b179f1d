//! System calls no crate wraps safely: the only place with `unsafe` code.
//!
//! Each function is safe to call with any arguments of its types.
#![expect(unsafe_code, reason = "this is the one module that may hold it; each block says why it is sound")]

pub mod ethtool;
pub mod inode_flags;
pub mod ipmi;
pub mod nvme;
pub mod packet;
pub mod scsi;
pub mod signals;
pub mod watchdog;

pub mod block;
