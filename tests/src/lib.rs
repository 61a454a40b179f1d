//! What crosses rooms: end to end in QEMU and OVMF, simulators, faults.

pub mod archive;
pub mod certificate;
pub mod partitions;
pub mod qemu;
pub mod redfish;
pub mod target_os;
pub mod tool;
