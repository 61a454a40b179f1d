//! What is a disk, what it is called, what uses it.

use std::os::unix::fs::symlink;

use super::sysfs::Machine;
use crate::disk::{Disk, Refusal, discover};

fn find(machine: &Machine, name: &str) -> Disk {
    let disks = discover(&machine.roots).unwrap();
    disks.into_iter().find(|disk| disk.name == name).unwrap()
}

fn links(machine: &Machine, name: &str) -> Vec<String> {
    find(machine, name).identity.links
}

#[test]
fn size_counts_sectors_of_512_whatever_the_disks_own() {
    let machine = Machine::new();
    machine.virtio("vda", 4, 2048, &[("queue/logical_block_size", "4096"), ("queue/rotational", "1")]);
    let disk = find(&machine, "vda");
    assert_eq!((disk.size, disk.logical_sector, disk.dev, disk.rotational), (1 << 20, 4096, (254, 4), true));
    assert_eq!(disk.refusal, None);
    assert_eq!(disk.identity.sequence, None, "kernels before 5.15 do not count");
    machine.attribute(&machine.roots.sys.join("block/vda"), "diskseq", b"17");
    assert_eq!(find(&machine, "vda").identity.sequence, Some(17));
}

#[test]
fn what_is_no_disk_to_write_is_told_apart() {
    let machine = Machine::new();
    machine.block("virtual/block/loop0", &[("size", "99")]);
    machine.virtio("vda", 1, 99, &[("removable", "1")]);
    machine.virtio("vdb", 2, 99, &[("ro", "1")]);
    machine.virtio("vdc", 3, 0, &[]);
    machine.virtio("vdd", 4, 99, &[("hidden", "1")]);
    machine.virtio("nvme0c1n1", 5, 99, &[]);
    machine.virtio("mmcblk0boot0", 6, 99, &[]);
    machine.virtio("nvme0n1", 7, 99, &[]);
    machine.virtio("mmcblk0", 8, 99, &[]);
    let expected = [
        ("loop0", Some(Refusal::Virtual)),
        ("mmcblk0", None),
        ("mmcblk0boot0", Some(Refusal::NotADisk)),
        ("nvme0c1n1", Some(Refusal::NotADisk)),
        ("nvme0n1", None),
        ("vda", Some(Refusal::Removable)),
        ("vdb", Some(Refusal::ReadOnly)),
        ("vdc", Some(Refusal::Empty)),
        ("vdd", Some(Refusal::NotADisk)),
    ];
    let found: Vec<_> = discover(&machine.roots).unwrap().into_iter().map(|d| (d.name, d.refusal)).collect();
    assert_eq!(found, expected.map(|(name, refusal)| (name.to_owned(), refusal)));
}

#[test]
fn disks_under_mounts_and_swap_are_in_use_through_every_layer() {
    let machine = Machine::new();
    let used = |name: &str| match find(&machine, name).refusal {
        Some(Refusal::InUse { by }) => by,
        other => format!("{other:?}"),
    };
    let vda = machine.virtio("vda", 1, 99, &[]);
    machine.partition(&vda, "vda1", 1, "254:17");
    machine.virtio("vdb", 2, 99, &[]);
    let vdc = machine.virtio("vdc", 3, 99, &[]);
    machine.partition(&vdc, "vdc2", 2, "254:50");
    machine.virtio("vdd", 4, 99, &[]);
    machine.block(
        "virtual/block/dm-0",
        &[("size", "9"), ("dev", "252:0"), ("dm/name", "vg-root"), ("slaves/md0/x", "")],
    );
    machine.block(
        "virtual/block/md0",
        &[("size", "9"), ("dev", "9:0"), ("slaves/vdc2/x", ""), ("slaves/dm-0/x", "")],
    );
    machine.mounts(
        "20 1 0:19 / /sys rw - sysfs sysfs rw\n21 1 254:17 / /boot rw shared:1 - ext4 /dev/vda1 rw\n\
         22 1 0:44 / / rw - btrfs /dev/mapper/vg-root rw\n",
    );
    machine.swaps("/dev/vdb partition 100 0 -2\n");
    assert_eq!(used("vda"), "the mount /boot");
    assert_eq!(used("vdb"), "swap");
    assert_eq!(used("vdc"), "the mount /");
    assert_eq!(used("vdd"), "None");
}

#[test]
fn virtio_and_nvme_disks_have_the_links_udev_would_make() {
    let machine = Machine::new();
    machine.virtio("vda", 4, 99, &[("serial", "SER 1")]);
    assert_eq!(
        links(&machine, "vda"),
        ["by-id/virtio-SER_1", "by-path/pci-0000:00:04.0", "by-path/virtio-pci-0000:00:04.0"]
    );
    let nvme = machine.block(
        "pci0000:00/0000:00:1d.0/0000:03:00.0/nvme/nvme0/nvme0n1",
        &[("size", "99"), ("wwid", "eui.0025388b71b4a1c2"), ("nsid", "1")],
    );
    symlink("..", nvme.join("device")).unwrap();
    let controller = nvme.parent().unwrap();
    machine.attribute(controller, "model", b"ACME SSD 980   ");
    machine.attribute(controller, "serial", b"S64DNX0   ");
    assert_eq!(
        links(&machine, "nvme0n1"),
        [
            "by-id/nvme-ACME_SSD_980_S64DNX0",
            "by-id/nvme-ACME_SSD_980_S64DNX0_1",
            "by-id/nvme-eui.0025388b71b4a1c2",
            "by-path/pci-0000:03:00.0-nvme-1",
        ]
    );
}

#[test]
fn scsi_disks_are_named_by_their_designators() {
    let machine = Machine::new();
    let at = "pci0000:00/0000:00:05.0/virtio3/host2/target2:0:1/2:0:1:0";
    let sda = machine.block(&format!("{at}/block/sda"), &[("size", "99")]);
    symlink("../..", sda.join("device")).unwrap();
    let device = sda.parent().unwrap().parent().unwrap();
    machine.attribute(device, "vendor", b"QEMU    ");
    machine.attribute(device, "model", b"QEMU HARDDISK   ");
    machine.attribute(device, "wwid", b"naa.5000c50015ea71aa");
    let vendor_specific = [&[0, 0x83, 0, 24, 2, 0, 0, 8][..], b"drive-s1"].concat();
    let naa = [1, 3, 0, 8, 0x50, 0, 0xc5, 0, 0x15, 0xea, 0x71, 0xaa];
    // Association 1: the port, which is not the disk.
    let port = [1, 0x13, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8];
    machine.attribute(device, "vpd_pg83", &[&vendor_specific[..], &naa, &port].concat());
    machine.attribute(device, "vpd_pg80", b"\0\x80\0\x08drive-s1");
    assert_eq!(
        links(&machine, "sda"),
        [
            "by-id/scsi-0QEMU_QEMU_HARDDISK_drive-s1",
            "by-id/scsi-35000c50015ea71aa",
            "by-id/scsi-SQEMU_QEMU_HARDDISK_drive-s1",
            "by-id/wwn-0x5000c50015ea71aa",
            "by-path/pci-0000:00:05.0-scsi-0:0:1:0",
            "by-path/virtio-pci-0000:00:05.0-scsi-0:0:1:0",
        ]
    );
    assert_eq!(find(&machine, "sda").identity.serial, "drive-s1");
}

#[test]
fn ata_disks_have_their_full_model_and_port() {
    let machine = Machine::new();
    let at = "pci0000:00/0000:00:1f.2/ata3/host2/target2:0:0/2:0:0:0";
    let sdb = machine.block(&format!("{at}/block/sdb"), &[("size", "99")]);
    symlink("../..", sdb.join("device")).unwrap();
    let device = sdb.parent().unwrap().parent().unwrap();
    machine.attribute(device, "vendor", b"ATA     ");
    machine.attribute(device, "model", b"A MODEL LONGER T");
    let names = format!("t10.ATA     {:<40}{:<20}", "A MODEL LONGER THAN SCSI HAS ROOM FOR", "WX 123");
    machine.attribute(device, "wwid", names.as_bytes());
    let ata = sdb.ancestors().find(|dir| dir.ends_with("ata3")).unwrap();
    machine.attribute(ata, "ata_port/ata3/port_no", b"1");
    assert_eq!(
        links(&machine, "sdb"),
        [
            "by-id/ata-A_MODEL_LONGER_THAN_SCSI_HAS_ROOM_FOR_WX_123",
            "by-path/pci-0000:00:1f.2-ata-1",
            "by-path/pci-0000:00:1f.2-ata-1.0",
        ]
    );
}

#[test]
fn damaged_vital_product_data_names_nothing_and_stops_nothing() {
    let machine = Machine::new();
    let sda = machine.block("pci0000:00/0000:00:05.0/host0/target0:0:0/0:0:0:0/block/sda", &[("size", "9")]);
    symlink("../..", sda.join("device")).unwrap();
    let device = sda.parent().unwrap().parent().unwrap();
    for page in [&b""[..], b"\0", b"\0\x83\0\xff\x02", b"\0\x83\0\x04\x02\x03\0\xff", &[0xff; 300]] {
        for file in ["vpd_pg80", "vpd_pg83", "vpd_pg89"] {
            machine.attribute(device, file, page);
        }
        assert!(links(&machine, "sda").iter().any(|link| link == "by-path/pci-0000:00:05.0-scsi-0:0:0:0"));
    }
}
