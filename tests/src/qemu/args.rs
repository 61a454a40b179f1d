//! The command line of QEMU for one virtual server.

use super::{BootFrom, Bus, Files, Hardware};

/// UEFI firmware of Debian's `ovmf`.
const FIRMWARE: &str = "/usr/share/OVMF/OVMF_CODE_4M.fd";

/// Arguments that start `hardware` with `first` at the head of its boot order.
///
/// The process ends when the guest resets: the boot order is part of the command line, so a reboot is a new
/// process.
pub(super) fn arguments(hardware: &Hardware, files: &Files, first: BootFrom) -> Vec<String> {
    let mut args: Vec<String> = Vec::new();
    let mut push = |words: &[&str]| args.extend(words.iter().map(|word| (*word).to_owned()));
    let total = hardware.sockets * hardware.cores;
    push(&["-machine", "q35", "-accel", "tcg,thread=multi", "-cpu", "max", "-nodefaults"]);
    push(&["-smp", &format!("{total},sockets={},cores={},threads=1", hardware.sockets, hardware.cores)]);
    push(&["-m", &hardware.memory_mib.to_string()]);
    push(&[
        "-smbios",
        &format!(
            "type=1,manufacturer={},product={},serial={}",
            hardware.manufacturer, hardware.product, hardware.serial
        ),
    ]);
    push(&["-drive", &format!("if=pflash,format=raw,readonly=on,file={FIRMWARE}")]);
    push(&["-drive", &format!("if=pflash,format=raw,file={}", files.variables.display())]);
    push(&["-display", "none", "-no-reboot", "-device", "virtio-rng-pci"]);
    push(&["-chardev", &format!("file,id=serial,path={},append=on", files.serial_log.display())]);
    push(&["-serial", "chardev:serial"]);
    push(&["-qmp", &format!("unix:{},server=on,wait=off", files.control.display())]);
    for (index, nic) in hardware.nics.iter().enumerate() {
        push(&["-netdev", &format!("tap,id=net{index},ifname={},script=no,downscript=no", nic.tap)]);
        // Without an option ROM the firmware's own network boot is used, as on a server board.
        let order = if index == 0 && first == BootFrom::Network { ",bootindex=1" } else { "" };
        push(&["-device", &format!("virtio-net-pci,netdev=net{index},mac={},romfile={order}", nic.mac)]);
    }
    for (index, disk) in hardware.disks.iter().enumerate() {
        let file = disk.file.display();
        push(&["-drive", &format!("if=none,id=disk{index},format=raw,cache=unsafe,file={file}")]);
        let device = match disk.bus {
            Bus::Virtio => "virtio-blk-pci",
            Bus::Nvme => "nvme",
        };
        let order = if index == 0 { ",bootindex=2" } else { "" };
        push(&["-device", &format!("{device},drive=disk{index},serial={}{order}", disk.serial)]);
    }
    args
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::qemu::{Disk, Nic};

    fn line(first: BootFrom) -> String {
        let hardware = Hardware {
            manufacturer: "Acme".to_owned(),
            product: "Anvil".to_owned(),
            serial: "A-1".to_owned(),
            sockets: 2,
            cores: 3,
            memory_mib: 1536,
            disks: vec![Disk { bus: Bus::Nvme, serial: "D1".to_owned(), size: 1, file: "/d1".into() }],
            nics: vec![Nic { mac: "52:54:00:00:00:01".to_owned(), tap: "tap0".to_owned() }],
        };
        let files = Files {
            variables: "/vars".into(),
            serial_log: "/serial".into(),
            qemu_log: "/log".into(),
            control: "/qmp".into(),
        };
        arguments(&hardware, &files, first).join(" ")
    }

    #[test]
    fn the_network_card_comes_first_only_when_asked() {
        assert!(line(BootFrom::Network).contains("romfile=,bootindex=1"));
        assert!(!line(BootFrom::Disk).contains("bootindex=1"));
        assert!(line(BootFrom::Disk).contains("nvme,drive=disk0,serial=D1,bootindex=2"));
    }

    #[test]
    fn packages_and_cores_are_given_as_asked() {
        assert!(line(BootFrom::Disk).contains("-smp 6,sockets=2,cores=3,threads=1 -m 1536"));
    }
}
