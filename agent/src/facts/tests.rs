//! A whole machine, as QEMU's q35 shows itself: SMBIOS 2.8 tables and the sysfs tree of its devices.

mod broken;
mod dumps;
mod trees;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use farrier_shared::contract::InspectionReport;
use farrier_shared::contract::capacity::gigabytes;
use serde_json::json;

use super::collect;
use super::smbios::build::structure;

fn write(root: &Path, path: &str, text: impl AsRef<[u8]>) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// `hex` of a structure's formatted area after its header, as dumped from a running machine.
fn area(kind: u8, hex: &str, strings: &[&str]) -> Vec<u8> {
    structure(kind, &hex::decode(hex.replace(' ', "")).unwrap(), strings)
}

fn tables() -> Vec<u8> {
    [
        area(0, "01 02 00e8 03 00 0800000000000000 1c04 0000 ffff", &["EDK II", "2022.11", "02/02/2022"]),
        area(
            1,
            "01 02 03 04 00112233445566778899aabbccddeeff 06 00 00",
            &["QEMU", "Standard PC (Q35 + ICH9, 2009)", "pc-q35-7.2", "SN42"],
        ),
        area(3, "01 01 02 00 00 03 03 03 02 00000000 00 00 00 00 00", &["QEMU", "pc-q35-7.2"]),
        // Two cores of two threads each; no cache, no speed but QEMU's constant.
        area(
            4,
            "01 03 01 02 0000000000000000 03 00 0000 d007 d007 41 01 ffff ffff ffff 00 00 00 02 02 04 0200 0100 0200 0200 0400",
            &["CPU 0", "QEMU", "pc-q35-7.2"],
        ),
        area(16, "01 03 06 00001000 feff 0100 0000000000000000", &[]),
        area(
            17,
            "0010 feff ffff ffff 0004 09 00 01 00 07 0200 0000 02 00 00 00 00 00000000 0000 0000 0000 0000",
            &["DIMM 0", "QEMU"],
        ),
        area(127, "", &[]),
    ]
    .concat()
}

fn machine() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    write(root, "sys/firmware/dmi/tables/DMI", tables());
    write(root, "sys/firmware/dmi/tables/smbios_entry_point", b"_SM_\x00\x1f\x02\x08");
    fs::create_dir_all(root.join("sys/firmware/efi")).unwrap();

    write(root, "sys/class/net/eth0/address", "52:54:00:12:34:56\n");
    write(root, "sys/class/net/eth0/ifindex", "2\n");
    write(root, "sys/class/net/eth0/type", "1\n");
    write(root, "sys/class/net/lo/address", "00:00:00:00:00:00\n");
    write(root, "sys/class/net/lo/ifindex", "1\n");
    fs::create_dir_all(root.join("sys/devices/virtio1")).unwrap();
    symlink("../../../devices/virtio1", root.join("sys/class/net/eth0/device")).unwrap();
    symlink("../../bus/virtio/drivers/virtio_net", root.join("sys/devices/virtio1/driver")).unwrap();

    write(root, "sys/block/vda/size", "41943040\n");
    write(root, "sys/block/vda/dev", "254:0\n");
    write(root, "sys/block/vda/serial", "DISK0001\n");
    write(root, "sys/block/vda/queue/rotational", "0\n");
    write(root, "sys/block/vda/queue/logical_block_size", "512\n");
    fs::create_dir_all(root.join("sys/block/vda/device")).unwrap();
    write(root, "sys/block/loop0/size", "0\n");
    write(root, "sys/block/sr0/size", "2097151\n");
    write(root, "sys/block/sr0/removable", "1\n");
    fs::create_dir_all(root.join("sys/block/sr0/device")).unwrap();
    dir
}

#[test]
fn the_report_of_a_virtual_machine() {
    let machine = machine();
    let facts = collect(machine.path());
    let disk = machine.path().join("dev/vda").display().to_string();
    let mut report = serde_json::to_value(&facts.report).unwrap();
    let farrier = report.as_object_mut().unwrap().remove("farrier").unwrap();
    assert_eq!(
        report,
        json!({
            "manufacturer": "QEMU",
            "model": "Standard PC (Q35 + ICH9, 2009)",
            "serialNumber": "SN42",
            "bootModeDetected": "UEFI",
            "firmwareVersion": "2022.11",
            "cpus": [{
                "id": "CPU 0", "vendor": "QEMU", "model": "pc-q35-7.2",
                "cores": 2, "threads": 4, "frequency": "2.0GHz",
            }],
            "memory": [{ "id": "DIMM 0", "type": "RAM", "capacity": "1GiB", "speed": "" }],
            "disks": [{ "name": disk, "model": "", "sizeGB": 21, "type": "SSD", "serialNumber": "DISK0001" }],
            "nics": [{
                "name": "eth0", "macAddress": "52:54:00:12:34:56", "driver": "virtio_net",
                "speed": "", "ipAddresses": [],
            }],
        })
    );
    assert_eq!(gigabytes(&facts.report.memory[0].capacity), Ok(1));
    assert_eq!(farrier["smbiosVersion"], "2.8");
    assert_eq!(farrier["notes"], json!([]));
    assert_eq!(
        farrier["nics"][0],
        json!({"name": "eth0", "permanentMac": null, "carrier": null, "pciAddress": null})
    );
    assert_eq!(
        (&farrier["bmc"], &farrier["tpmVersion"], &farrier["numa"]),
        (&json!(null), &json!(null), &json!([]))
    );
    assert_eq!(farrier["disks"][0]["sizeBytes"], 41_943_040_u64 * 512);
}

#[test]
fn a_table_cut_anywhere_still_gives_a_report() {
    let machine = machine();
    let whole = tables();
    for cut in (0..whole.len()).step_by(7) {
        write(machine.path(), "sys/firmware/dmi/tables/DMI", &whole[..cut]);
        let report = collect(machine.path()).report;
        assert_eq!((report.disks.len(), report.nics.len()), (1, 1), "cut at {cut}");
        // Firmware and system come first in the table.
        assert!(cut < 200 || report.manufacturer == "QEMU", "cut at {cut}");
    }
}

#[test]
fn an_empty_root_gives_an_empty_report_with_notes() {
    let root = tempfile::tempdir().unwrap();
    let facts = collect(root.path());
    assert_eq!(facts.report.boot_mode_detected, "Legacy");
    assert!(facts.disks.is_empty() && facts.report.cpus.is_empty());
    let farrier = facts.report.farrier.unwrap();
    let notes = farrier["notes"].as_array().unwrap();
    assert!(notes.iter().any(|n| n.as_str().unwrap().starts_with("SMBIOS table not read")), "{notes:?}");
    assert!(notes.iter().any(|n| n == "no disk found"), "{notes:?}");
}

#[test]
fn the_report_of_this_machine_is_accepted_by_the_contract() {
    let facts = collect(Path::new("/"));
    let text = serde_json::to_string(&facts.report).unwrap();
    let back: InspectionReport = serde_json::from_str(&text).unwrap();
    assert_eq!(back, facts.report);
    assert!(!back.cpus.is_empty(), "a machine that runs tests has a processor");
}
