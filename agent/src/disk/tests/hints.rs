//! Disks as `farrier.disk-hints` asks for them.

use std::os::unix::fs::symlink;

use super::sysfs::Machine;
use crate::disk::{DiskError, Wish, choose, discover};

const NAA: &str = "naa.5000c50015ea71aa";

/// One disk of each kind, the smallest on USB.
fn machine() -> Machine {
    let machine = Machine::new();
    let sas = "host0/port-0:1/end_device-0:1/target0:0:1/0:0:1:0";
    let names = [("vendor", "SEAGATE"), ("model", "ST4000NM 0023"), ("wwid", NAA)];
    let sda = machine.scsi("sda", sas, 8000, &names);
    machine.attribute(&sda, "queue/rotational", b"1");
    let usb = "usb2/2-1/2-1:1.0/host6/target6:0:0/6:0:0:0";
    machine.scsi("sdb", usb, 100, &[("vendor", "Kingston"), ("model", "DataTraveler")]);
    let raid = "host1/target1:2:0/1:2:0:0";
    machine.scsi("sdc", raid, 2000, &[("vendor", "DELL"), ("model", "PERC H755")]);
    machine.virtio("vda", 6, 4000, &[("serial", "ROOT")]);
    machine.virtio("vdb", 7, 3000, &[("serial", "ROOT-2")]);
    machine.virtio("vdc", 8, 10, &[("ro", "1")]);
    machine
}

fn pick(machine: &Machine, pin: Option<&str>, hints: &str, required: u64) -> Result<String, DiskError> {
    let disks = discover(&machine.roots).unwrap();
    let pin = pin.map(|pin| pin.parse().unwrap());
    let hints = (!hints.is_empty()).then(|| hints.parse().expect(hints));
    let wish = Wish { pin: pin.as_ref(), hints: hints.as_ref(), required };
    choose(&disks, &wish, &machine.roots).map(|disk| disk.name)
}

#[test]
fn every_hint_must_hold_and_the_smallest_of_those_disks_is_taken() {
    let machine = machine();
    for (hints, disk) in [
        ("size>=1K", "sdc"),
        ("size>=1100000", "vdb"),
        ("size>=1M,size<=2M", "sdc"),
        ("transport=virtio", "vdb"),
        ("transport=virtio,serial=root", "vda"),
        ("serial~=oot-", "vdb"),
        ("model=st4000nm_0023", "sda"),
        ("model~=H755", "sdc"),
        ("vendor=seagate", "sda"),
        ("vendor~=ell", "sdc"),
        ("rotational=1", "sda"),
        ("rotational=0,transport=scsi", "sdc"),
        ("transport=sas", "sda"),
        ("transport=usb", "sdb"),
        ("hctl=0:0:1:0", "sda"),
        ("wwn=0x5000C50015EA71AA", "sda"),
        ("wwn=naa.5000c50015ea71aa", "sda"),
        ("wwn~=15ea", "sda"),
        ("by-path=pci-0000:00:06.0", "vda"),
        ("by-path=/dev/disk/by-path/virtio-pci-0000:00:07.0", "vdb"),
    ] {
        assert_eq!(pick(&machine, None, hints, 0).expect(hints), disk, "{hints}");
    }
    assert_eq!(pick(&machine, None, "transport=virtio", 3001 * 512).unwrap(), "vda", "the image must fit");
}

#[test]
fn when_nothing_matches_every_disk_is_named_with_what_differs() {
    let error = pick(&machine(), None, "transport=nvme,size>=1", 0).unwrap_err().to_string();
    assert_eq!(
        error,
        "no disk matches farrier.disk-hints=transport=nvme,size>=1; found sda (transport is sas), sdb (needs a \
         pin or transport=usb), sdc (transport is scsi), vda (transport is virtio), vdb (transport is virtio), vdc (read-only)"
    );
    for (hints, reason) in [
        ("serial=nope", "sda (serial is unknown)"),
        ("serial=nope", "vda (serial is ROOT)"),
        ("size>=1T", "vda (size is 2048000)"),
        ("rotational=1,vendor=dell", "sda (vendor is SEAGATE)"),
        ("hctl=9:9:9:9", "vda (hctl is none)"),
    ] {
        let error = pick(&machine(), None, hints, 0).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn a_disk_that_may_be_somebody_elses_is_taken_only_by_name_or_when_asked_for() {
    let machine = machine();
    machine.scsi("sde", "host2/rport-2:0-1/target2:0:0/2:0:0:1", 90, &[("vendor", "NETAPP")]);
    machine.scsi("sdf", "host3/session1/target3:0:0/3:0:0:1", 80, &[("vendor", "LIO-ORG")]);
    for (place, size) in
        [("mmc_host/mmc0/mmc0:0001/block/mmcblk0", "70"), ("region0/namespace0.0/block/pmem0", "60")]
    {
        let real = machine.block(place, &[("size", size)]);
        symlink("../..", real.join("device")).unwrap();
    }
    assert_eq!(pick(&machine, None, "", 0).unwrap(), "sdc");
    assert_eq!(pick(&machine, None, "size<=2M", 0).unwrap(), "sdc");
    let others = [("sdb", "usb"), ("sde", "fc"), ("sdf", "iscsi"), ("mmcblk0", "mmc"), ("pmem0", "pmem")];
    for (name, transport) in others {
        assert_eq!(pick(&machine, Some(&format!("/dev/{name}")), "", 0).unwrap(), name);
        assert_eq!(pick(&machine, None, &format!("transport={transport}"), 0).unwrap(), name);
        let error = pick(&machine, None, "vendor=none", 0).unwrap_err().to_string();
        assert!(error.contains(&format!("{name} (needs a pin or transport={transport})")), "{error}");
    }
}

#[test]
fn a_pinned_disk_must_be_as_the_hints_say_too() {
    let machine = machine();
    assert_eq!(pick(&machine, Some("sda"), "transport=sas", 0).unwrap(), "sda");
    let error = pick(&machine, Some("sda"), "rotational=0", 0).unwrap_err().to_string();
    assert_eq!(error, "target disk sda does not match farrier.disk-hints=rotational=0: its rotational is 1");
}
