//! The command line of QEMU for one virtual server.

use super::{BootFrom, Bus, Disk, Files, Firmware, Hardware, Plug};

/// UEFI firmware of Debian's `ovmf`.
const OVMF: &str = "/usr/share/OVMF/OVMF_CODE_4M.fd";

/// Arguments that start `hardware` with `first` at the head of its boot order.
///
/// The process ends when the guest resets: the boot order is part of the command line, so a reboot is a new
/// process.
pub(super) fn arguments(hardware: &Hardware, files: &Files, first: BootFrom) -> Vec<String> {
    let mut args: Vec<String> = Vec::new();
    let mut push = |words: &[&str]| args.extend(words.iter().map(|word| (*word).to_owned()));
    let total = hardware.sockets * hardware.cores;
    // Without graphics SeaBIOS speaks on the serial port, as OVMF always does.
    push(&["-machine", "q35,graphics=off", "-accel", "tcg,thread=multi", "-cpu", "max", "-nodefaults"]);
    push(&["-smp", &format!("{total},sockets={},cores={},threads=1", hardware.sockets, hardware.cores)]);
    push(&["-m", &hardware.memory_mib.to_string()]);
    push(&[
        "-smbios",
        &format!(
            "type=1,manufacturer={},product={},serial={}",
            hardware.manufacturer, hardware.product, hardware.serial
        ),
    ]);
    if hardware.firmware == Firmware::Uefi {
        push(&["-drive", &format!("if=pflash,format=raw,readonly=on,file={OVMF}")]);
        push(&["-drive", &format!("if=pflash,format=raw,file={}", files.variables.display())]);
    }
    push(&["-display", "none", "-no-reboot", "-device", "virtio-rng-pci"]);
    push(&["-chardev", &format!("file,id=serial,path={},append=on", files.serial_log.display())]);
    push(&["-serial", "chardev:serial"]);
    push(&["-qmp", &format!("unix:{},server=on,wait=off", files.control.display())]);
    for (index, nic) in hardware.nics.iter().enumerate() {
        let plug = match &nic.plug {
            Plug::Tap(tap) => format!("tap,ifname={tap},script=no,downscript=no"),
            Plug::Trunk(sockets) => sockets.netdev(),
        };
        let netdev = netdev(index);
        push(&["-netdev", &format!("{plug},id={netdev}")]);
        // Without an option ROM the firmware's own network boot is used, as on a server board. SeaBIOS has none: it
        // gets the ROM that QEMU brings for the card, which is Debian's `ipxe-qemu`.
        let rom = if hardware.firmware == Firmware::Uefi { ",romfile=" } else { "" };
        let boots = index == hardware.boot_nic && first == BootFrom::Network;
        let order = if boots { ",bootindex=1" } else { "" };
        push(&["-device", &format!("virtio-net-pci,netdev={netdev},mac={}{rom}{order}", nic.mac)]);
    }
    if hardware.disks.iter().any(|disk| disk.bus == Bus::Scsi) {
        push(&["-device", "virtio-scsi-pci,id=scsi"]);
    }
    for (index, disk) in hardware.disks.iter().enumerate() {
        let file = disk.file.display();
        push(&["-drive", &format!("if=none,id=disk{index},format=raw,cache=unsafe,file={file}")]);
        let order = if index == 0 { ",bootindex=2" } else { "" };
        push(&[
            "-device",
            &format!("{}drive=disk{index},serial={}{order}", device(index, disk), disk.serial),
        ]);
    }
    args
}

/// What QEMU calls the cable of a network card.
pub(super) fn netdev(nic: usize) -> String {
    format!("net{nic}")
}

/// The device of a disk and where it is plugged in. AHCI is part of the board and has 512-byte sectors alone.
fn device(index: usize, disk: &Disk) -> String {
    let bytes = disk.sector.bytes();
    let sectors = format!("logical_block_size={bytes},physical_block_size={bytes}");
    match disk.bus {
        Bus::Virtio => format!("virtio-blk-pci,{sectors},"),
        Bus::Nvme => format!("nvme,{sectors},"),
        Bus::Ahci => format!("ide-hd,bus=ide.{index},"),
        Bus::Scsi => format!("scsi-hd,bus=scsi.0,{sectors},"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::partitions::Sector;
    use crate::qemu::Nic;

    fn line(firmware: Firmware, first: BootFrom) -> String {
        let disk = |bus, sector| Disk { bus, serial: "D1".to_owned(), size: 1, sector, file: "/d1".into() };
        let nic = |mac: &str| Nic { mac: mac.to_owned(), plug: Plug::Tap("tap0".to_owned()) };
        let hardware = Hardware {
            manufacturer: "Acme".to_owned(),
            product: "Anvil".to_owned(),
            serial: "A-1".to_owned(),
            firmware,
            sockets: 2,
            cores: 3,
            memory_mib: 1536,
            disks: vec![disk(Bus::Nvme, Sector::B512), disk(Bus::Scsi, Sector::B4096)],
            nics: vec![nic("52:54:00:00:00:01"), nic("52:54:00:00:00:02")],
            boot_nic: 1,
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
        let network = line(Firmware::Uefi, BootFrom::Network);
        assert!(network.contains("mac=52:54:00:00:00:02,romfile=,bootindex=1"), "{network}");
        assert!(!network.contains("mac=52:54:00:00:00:01,romfile=,bootindex"), "{network}");
        let disk = line(Firmware::Uefi, BootFrom::Disk);
        assert!(
            !disk.contains("bootindex=1") && disk.contains("drive=disk0,serial=D1,bootindex=2"),
            "{disk}"
        );
    }

    #[test]
    fn disks_have_the_sectors_asked_for() {
        let line = line(Firmware::Uefi, BootFrom::Disk);
        assert!(line.contains("nvme,logical_block_size=512,physical_block_size=512,drive=disk0"), "{line}");
        assert!(line.contains("scsi-hd,bus=scsi.0,logical_block_size=4096,"), "{line}");
    }

    #[test]
    fn a_bios_machine_has_no_uefi_and_boots_by_its_cards_rom() {
        let line = line(Firmware::Bios, BootFrom::Network);
        assert!(!line.contains("pflash") && line.contains("mac=52:54:00:00:00:02,bootindex=1"), "{line}");
    }

    #[test]
    fn packages_and_cores_are_given_as_asked() {
        let line = line(Firmware::Uefi, BootFrom::Disk);
        assert!(line.contains("-smp 6,sockets=2,cores=3,threads=1 -m 1536"), "{line}");
    }
}
