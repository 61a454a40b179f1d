//! What the kernel built on the target is stopped, or named.

use std::fs;
use std::path::{Path, PathBuf};

use super::sysfs::Machine;
use crate::disk::holders::release;

fn array(machine: &Machine, name: &str) -> PathBuf {
    machine.block(
        &format!("virtual/block/{name}"),
        &[("size", "9"), ("dev", "9:0"), ("md/array_state", "active")],
    )
}

fn state(array: &Path) -> String {
    fs::read_to_string(array.join("md/array_state")).unwrap()
}

#[test]
fn arrays_on_the_disk_and_its_partitions_are_stopped_the_upper_ones_first() {
    let machine = Machine::new();
    let vda = machine.virtio("vda", 1, 99, &[]);
    machine.partition(&vda, "vda1", 1, "254:17");
    machine.partition(&vda, "vda2", 2, "254:18");
    let (lower, upper) = (array(&machine, "md0"), array(&machine, "md1"));
    let other = array(&machine, "md2");
    machine.attribute(&vda, "vda1/holders/md0", b"");
    machine.attribute(&vda, "vda2/holders/md0", b"");
    machine.attribute(&lower, "holders/md1", b"");
    release(&machine.roots, "vda").unwrap();
    assert_eq!([state(&lower), state(&upper)], ["clear", "clear"]);
    assert_eq!(state(&other), "active\n", "an array on other disks is left alone");
}

#[test]
fn a_device_mapper_volume_is_named_and_nothing_below_it_is_stopped() {
    let machine = Machine::new();
    let vda = machine.virtio("vda", 1, 99, &[]);
    let md = array(&machine, "md0");
    machine.block("virtual/block/dm-0", &[("size", "9"), ("dm/name", "vg0-root")]);
    machine.attribute(&vda, "holders/md0", b"");
    machine.attribute(&md, "holders/dm-0", b"");
    let error = release(&machine.roots, "vda").unwrap_err().to_string();
    assert_eq!(
        error,
        "vda is held by dm-0: device mapper volume vg0-root; remove it, or choose another disk"
    );
    assert_eq!(state(&md), "active\n");
}

#[test]
fn a_disk_that_nothing_holds_is_left_as_it_is() {
    let machine = Machine::new();
    machine.virtio("vda", 1, 99, &[]);
    release(&machine.roots, "vda").unwrap();
}
