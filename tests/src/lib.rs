//! What crosses rooms: end to end in QEMU and OVMF, simulators, faults.

pub mod archive;
pub mod certificate;
pub mod lab;
pub mod partitions;
pub mod qemu;
pub mod redfish;
pub mod secrets;
pub mod synthetic;
pub mod target_os;
pub mod tool;
