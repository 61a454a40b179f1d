//! What crosses rooms: end to end in QEMU and OVMF, simulators, faults.

pub mod archive;
pub mod cases;
pub mod certificate;
pub mod demo;
pub mod disk_check;
pub mod fault_proxy;
pub mod fleet;
pub mod lab;
pub mod leftovers;
pub mod partitions;
pub mod qemu;
pub mod redfish;
pub mod runner;
pub mod secrets;
pub mod sushy;
pub mod synthetic;
pub mod target_os;
pub mod tool;
