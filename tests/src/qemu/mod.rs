//! One virtual server: real firmware, disks with serials, network cards on the lab's wires.

mod args;
mod process;
mod qmp;
mod variables;

use std::path::PathBuf;

pub use process::{Ended, Running};
pub use variables::{BootEntry, Variables};

use crate::lab::Sockets;
use crate::partitions::Sector;

/// What a virtual server is made of.
#[derive(Clone, Debug)]
pub struct Hardware {
    /// SMBIOS manufacturer.
    pub manufacturer: String,
    /// SMBIOS product.
    pub product: String,
    /// SMBIOS serial number.
    pub serial: String,
    /// What it starts with.
    pub firmware: Firmware,
    /// Processor packages.
    pub sockets: u32,
    /// Cores of each package.
    pub cores: u32,
    /// Memory, in MiB.
    pub memory_mib: u64,
    /// Disks; the firmware tries the first one.
    pub disks: Vec<Disk>,
    /// Network cards.
    pub nics: Vec<Nic>,
    /// Which of them the firmware boots from.
    pub boot_nic: usize,
}

/// What a server starts with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Firmware {
    /// OVMF.
    Uefi,
    /// SeaBIOS, with iPXE as the network card's boot ROM.
    Bios,
}

/// How a disk is attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bus {
    /// `/dev/vda` and so on.
    Virtio,
    /// `/dev/nvme0n1` and so on.
    Nvme,
    /// `/dev/sda` and so on, of an AHCI controller.
    Ahci,
    /// `/dev/sda` and so on, of a virtio-scsi controller.
    Scsi,
}

/// A disk.
#[derive(Clone, Debug)]
pub struct Disk {
    /// How it is attached.
    pub bus: Bus,
    /// Serial number.
    pub serial: String,
    /// Size in bytes.
    pub size: u64,
    /// Its logical sectors.
    pub sector: Sector,
    /// The file its bytes are in.
    pub file: PathBuf,
}

/// A network card.
#[derive(Clone, Debug)]
pub struct Nic {
    /// Ethernet address.
    pub mac: String,
    /// What it is plugged into.
    pub plug: Plug,
}

/// The other end of a network card's cable.
#[derive(Clone, Debug)]
pub enum Plug {
    /// A tap device of the lab.
    Tap(String),
    /// A switch port with a VLAN on it.
    Trunk(Sockets),
}

/// Files of one virtual server.
#[derive(Clone, Debug)]
pub struct Files {
    /// Its copy of the firmware's variables; kept over power cycles, as on a real board.
    pub variables: PathBuf,
    /// What it prints on its serial port; appended to over power cycles.
    pub serial_log: PathBuf,
    /// What QEMU itself complains about.
    pub qemu_log: PathBuf,
    /// QEMU's control socket.
    pub control: PathBuf,
}

/// What the firmware tries first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BootFrom {
    /// The first network card, then the first disk.
    Network,
    /// The first disk, and nothing else.
    Disk,
}
