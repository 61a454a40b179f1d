//! What crosses rooms: end to end in QEMU and OVMF, simulators, faults.

pub mod archive;
pub mod partitions;
pub mod target_os;
pub mod tool;
