//! Several paths to one disk, and several disks that claim to be one.

use super::sysfs::Machine;
use crate::disk::{Disk, DiskError, Refusal, Wish, choose, discover};

const NAA: &str = "naa.600508b1001c1234d5e6f7a8b9c0d1e2";

fn lun(machine: &Machine, name: &str, host: u32, sectors: u64, more: &[(&str, &str)]) {
    let below = format!("host{host}/rport-{host}:0-1/target{host}:0:0/{host}:0:0:1");
    let names = [("vendor", "HPE"), ("model", "MSA 2060"), ("wwid", NAA)];
    machine.scsi(name, &below, sectors, &[&names[..], more].concat());
}

fn disks(machine: &Machine) -> Vec<Disk> {
    discover(&machine.roots).unwrap()
}

fn eligible(machine: &Machine) -> Vec<String> {
    disks(machine).into_iter().filter(|d| d.refusal.is_none()).map(|d| d.name).collect()
}

fn pick(machine: &Machine, pin: &str) -> Result<String, DiskError> {
    let pin = pin.parse().unwrap();
    let wish = Wish { pin: Some(&pin), ..Wish::default() };
    choose(&disks(machine), &wish, &machine.roots).map(|disk| disk.name)
}

#[test]
fn paths_that_share_a_world_wide_name_are_one_disk_written_through_the_best_of_them() {
    let machine = Machine::new();
    lun(&machine, "sda", 1, 900, &[("state", "offline")]);
    lun(&machine, "sdb", 2, 900, &[("state", "running"), ("access_state", "standby")]);
    lun(&machine, "sdc", 3, 900, &[("state", "running"), ("access_state", "active/optimized")]);
    lun(&machine, "sdd", 4, 900, &[("state", "running"), ("access_state", "active/non-optimized")]);
    assert_eq!(eligible(&machine), ["sdc"]);
    let all = disks(&machine);
    assert_eq!(all[2].other_paths, ["sda", "sdb", "sdd"]);
    assert_eq!(all[0].refusal, Some(Refusal::PathOf { disk: "sdc".into() }));
    // Whichever path or name is pinned, it is that disk.
    for pin in ["sdc", "/dev/sda", "/dev/disk/by-id/wwn-0x600508b1001c1234d5e6f7a8b9c0d1e2"] {
        assert_eq!(pick(&machine, pin).expect(pin), "sdc");
    }
}

#[test]
fn a_disk_in_use_is_in_use_through_every_path() {
    let machine = Machine::new();
    lun(&machine, "sda", 1, 900, &[]);
    lun(&machine, "sdb", 2, 900, &[]);
    machine.swaps("/dev/sdb partition 100 0 -2\n");
    assert!(eligible(&machine).is_empty());
}

#[test]
fn a_path_that_cannot_be_written_is_not_taken() {
    let machine = Machine::new();
    lun(&machine, "sda", 1, 900, &[]);
    lun(&machine, "sdb", 2, 900, &[]);
    let block = machine.roots.sys.join("block/sda");
    machine.attribute(&block, "ro", b"1");
    assert_eq!(eligible(&machine), ["sdb"]);
}

#[test]
fn different_disks_that_share_a_name_stay_two_and_a_pin_by_that_name_is_refused() {
    let machine = Machine::new();
    lun(&machine, "sda", 1, 900, &[]);
    lun(&machine, "sdb", 2, 901, &[]);
    assert_eq!(eligible(&machine), ["sda", "sdb"]);
    let error = pick(&machine, "/dev/disk/by-id/wwn-0x600508b1001c1234d5e6f7a8b9c0d1e2").unwrap_err();
    assert!(error.to_string().contains("names several disks, sda, sdb"), "{error}");
}

#[test]
fn names_nobody_assigned_join_nothing() {
    for wwid in ["naa.0000000000000000", "naa.ffffffffffffffff", "eui.0123456789abcdef", ""] {
        let machine = Machine::new();
        lun(&machine, "sda", 1, 900, &[("wwid", wwid)]);
        lun(&machine, "sdb", 2, 900, &[("wwid", wwid)]);
        assert_eq!(eligible(&machine), ["sda", "sdb"], "{wwid}");
    }
}

#[test]
fn usb_and_sata_disks_are_never_paths_of_another() {
    let machine = Machine::new();
    let named = [("wwid", NAA)];
    machine.scsi("sda", "usb2/2-1/2-1:1.0/host6/target6:0:0/6:0:0:0", 9, &named);
    machine.scsi("sdb", "usb2/2-2/2-2:1.0/host7/target7:0:0/7:0:0:0", 9, &named);
    machine.scsi("sdc", "ata1/host1/target1:0:0/1:0:0:0", 9, &named);
    machine.scsi("sdd", "ata2/host2/target2:0:0/2:0:0:0", 9, &named);
    assert_eq!(eligible(&machine), ["sda", "sdb", "sdc", "sdd"]);
}
