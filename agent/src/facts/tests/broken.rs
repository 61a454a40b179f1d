//! Tables as firmware gets them wrong. The defects are those Canonical's firmware test suite checks for (fwts,
//! `src/dmi/dmicheck`): wrong lengths, string numbers out of range, structure counts that lie, no end. The old server
//! is a Dell whose `dmidecode` output stands in a public tutorial (thegeekstuff.com, November 2008): SMBIOS 2.3 with
//! processors of 35 bytes, before cores were counted.

use std::path::Path;

use super::{area, machine, tables, write};
use crate::facts::collect;
use crate::facts::smbios::build::structure;

const DMI: &str = "sys/firmware/dmi/tables/DMI";

fn cpuinfo(root: &Path) {
    let block = |n: u32| {
        format!("processor\t: {n}\nmodel name\t: Xeon\nphysical id\t: {}\ncore id\t\t: 0\n\n", n / 2)
    };
    write(root, "proc/cpuinfo", (0..4).map(block).collect::<String>());
    write(root, "proc/meminfo", "MemTotal:        2027796 kB\n");
    write(root, "sys/class/dmi/id/product_name", "FROM-ID\n");
}

#[test]
fn an_old_server_is_told_with_the_cores_its_kernel_counts() {
    let processor = "01 03 0b 02 0000000000000000 00 92 8500 100e f00a 41 04 0007 0107 0207 00 00 00";
    let table = [
        area(
            0,
            "01 02 00f0 03 0f 809b 7f 00 00 00 3700 00 00",
            &["Dell Computer Corporation", "A07", "01/13/2004"],
        ),
        area(4, processor, &["Processor 1", "Intel"]),
        area(4, processor, &["Processor 2", "Intel"]),
        area(127, "", &[]),
    ]
    .concat();
    let machine = machine();
    cpuinfo(machine.path());
    write(machine.path(), DMI, table);
    let report = collect(machine.path()).report;
    assert_eq!(report.firmware_version, "A07");
    let cpus: Vec<_> =
        report.cpus.iter().map(|c| (c.id.as_str(), c.cores, c.threads, c.frequency.as_str())).collect();
    assert_eq!(cpus, [("Processor 1", 1, 2, "2.8GHz"), ("Processor 2", 1, 2, "2.8GHz")]);
    // It says nothing of memory or who made it: the kernel does.
    assert_eq!((report.memory[0].capacity.as_str(), report.model.as_str()), ("1980MiB", "FROM-ID"));
}

#[test]
fn a_structure_of_no_length_ends_the_table_and_what_came_before_counts() {
    let system = structure(1, &[1, 2, 0, 0], &["ACME", "Model 1"]);
    let machine = machine();
    cpuinfo(machine.path());
    for length in 0..4 {
        let broken = [4, length, 4, 0, 1, 0, 0];
        write(machine.path(), DMI, [&system[..], &broken, &tables()].concat());
        let report = collect(machine.path()).report;
        assert_eq!((report.manufacturer.as_str(), report.model.as_str()), ("ACME", "Model 1"), "{length}");
        assert_eq!((report.cpus.len(), report.memory.len()), (2, 1), "the kernel's count");
    }
}

#[test]
fn a_string_number_out_of_range_is_no_string_and_the_kernels_copy_serves() {
    let machine = machine();
    cpuinfo(machine.path());
    write(machine.path(), DMI, structure(1, &[1, 9, 255, 0], &["ACME"]));
    let report = collect(machine.path()).report;
    assert_eq!((report.manufacturer.as_str(), report.model.as_str()), ("ACME", "FROM-ID"));
}

#[test]
fn an_entry_point_that_lies_of_count_and_size_changes_nothing() {
    let machine = machine();
    let honest = collect(machine.path()).report;
    // 65535 structures, none longer than one byte, in a table of no length.
    let mut entry = b"_SM_\x00\x1f\x02\x08\x01\x00\x00\x00\x00\x00\x00\x00_DMI_\x00".to_vec();
    entry.extend([0, 0, 0, 0, 0, 0, 0xff, 0xff, 0x28]);
    write(machine.path(), "sys/firmware/dmi/tables/smbios_entry_point", entry);
    let told = collect(machine.path()).report;
    assert_eq!(told.cpus, honest.cpus);
    assert_eq!(told.farrier.unwrap()["smbiosVersion"], "2.8");
}

#[test]
fn a_table_without_end_is_read_to_its_last_byte_and_rubbish_after_it_adds_nothing() {
    let machine = machine();
    let honest = collect(machine.path()).report;
    let whole = tables();
    let endless = &whole[..whole.len() - 6];
    for rubbish in [&[][..], &[0xff; 64], &[0; 64]] {
        write(machine.path(), DMI, [endless, rubbish].concat());
        let told = collect(machine.path()).report;
        assert_eq!((&told.cpus, &told.memory, &told.model), (&honest.cpus, &honest.memory, &honest.model));
    }
    write(machine.path(), DMI, "");
    assert_eq!(collect(machine.path()).report.disks, honest.disks);
}
