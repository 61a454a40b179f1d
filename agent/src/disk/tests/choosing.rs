//! Which disk is written, and which never is.

use std::fs;
use std::os::unix::fs::symlink;

use super::sysfs::Machine;
use crate::disk::{DiskError, Wish, choose, discover};

fn pick(machine: &Machine, pin: Option<&str>, required: u64) -> Result<String, DiskError> {
    let disks = discover(&machine.roots).unwrap();
    let pin = pin.map(|pin| pin.parse().unwrap());
    let wish = Wish { pin: pin.as_ref(), hints: None, required };
    choose(&disks, &wish, &machine.roots).map(|disk| disk.name)
}

fn machine() -> Machine {
    let machine = Machine::new();
    machine.virtio("vda", 1, 4096, &[("serial", "BIG")]);
    let vdb = machine.virtio("vdb", 2, 2048, &[("serial", "SMALL-2")]);
    machine.partition(&vdb, "vdb1", 1, "254:33");
    machine.virtio("vdc", 3, 2048, &[("serial", "SMALL-1")]);
    machine.virtio("vdd", 4, 10, &[("removable", "1")]);
    machine.block("virtual/block/loop0", &[("size", "1")]);
    machine
}

#[test]
fn without_a_pin_the_smallest_that_is_large_enough_is_taken_the_first_by_name() {
    let machine = machine();
    assert_eq!(pick(&machine, None, 0).unwrap(), "vdb");
    assert_eq!(pick(&machine, None, 1 << 20).unwrap(), "vdb");
    assert_eq!(pick(&machine, None, (1 << 20) + 1).unwrap(), "vda");
    let error = pick(&machine, None, 1 << 30).unwrap_err().to_string();
    assert!(error.contains("at least 1073741824 bytes") && error.contains("vdd (removable)"), "{error}");
    assert!(!error.contains("loop0"), "{error}");
}

#[test]
fn a_pin_is_a_path_a_kernel_name_or_a_link_that_nobody_made() {
    let machine = machine();
    for pin in [
        "/dev/vdc",
        "vdc",
        "/dev/disk/by-id/virtio-SMALL-1",
        "/dev/disk/by-path/pci-0000:00:03.0",
        "/dev/disk/by-path/virtio-pci-0000:00:03.0",
    ] {
        assert_eq!(pick(&machine, Some(pin), 0).expect(pin), "vdc");
    }
}

#[test]
fn a_link_that_somebody_made_is_followed() {
    let machine = machine();
    let dir = machine.roots.dev.join("disk/by-custom");
    fs::create_dir_all(&dir).unwrap();
    symlink("../../vdc", dir.join("mine")).unwrap();
    assert_eq!(pick(&machine, Some("/dev/disk/by-custom/mine"), 0).unwrap(), "vdc");
}

#[test]
fn a_pin_never_falls_back_and_says_what_is_wrong() {
    let machine = machine();
    fs::create_dir(machine.roots.dev.join("pts")).unwrap();
    let cases = [
        ("/dev/nope", "target disk /dev/nope not found; disks here: vda (2097152 bytes), vdb"),
        ("/dev/disk/by-id/virtio-NOPE", "not found"),
        ("/dev/pts", "is not a block device"),
        ("/dev/../proc/self", "is not a block device"),
        ("/dev/vdb1", "is a partition"),
        ("vdb1", "is a partition"),
        ("/dev/disk/by-id/virtio-SMALL-2-part1", "is a partition"),
        ("/dev/vdd", "it is removable"),
        ("/dev/loop0", "it is virtual"),
    ];
    for (pin, reason) in cases {
        let error = pick(&machine, Some(pin), 0).expect_err(pin).to_string();
        assert!(error.contains(reason), "{error}");
    }
    let error = pick(&machine, Some("vdc"), (1 << 20) + 1).unwrap_err().to_string();
    assert!(error.contains("of 1048576 bytes is too small: the image needs 1048577"), "{error}");
}
