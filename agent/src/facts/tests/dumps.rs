//! Tables of machines that exist (`fixtures/README.md`), whole and broken. What a dump says is what `dmidecode
//! --from-dump` shows of it.

use std::fs;
use std::path::{Path, PathBuf};

use farrier_shared::contract::report::{Cpu, MemoryModule};
use proptest::prelude::*;
use serde_json::json;

use super::{collect, write};
use crate::facts::system::{System, system};
use crate::facts::{cpu, management, memory};

/// Where the table begins in a dump, behind the entry point.
const TABLE: usize = 32;

/// What the tables say of a machine.
struct Machine {
    dump: &'static str,
    version: &'static str,
    /// Manufacturer, model, serial number.
    system: [&'static str; 3],
    /// Vendor, version, date.
    firmware: [&'static str; 3],
    /// Socket, cores, threads.
    sockets: &'static [(&'static str, i32, i32)],
    /// Vendor, model, frequency of each.
    cpu: [&'static str; 3],
    /// Slot and capacity.
    modules: &'static [(&'static str, &'static str)],
    /// Technology and speed of each.
    memory: [&'static str; 2],
    has_bmc: bool,
}

const MACHINES: &[Machine] = &[
    Machine {
        dump: "dell-poweredge",
        version: "3.2",
        system: ["Dell Inc.", "PowerEdge R777sd", "XXXXXXX"],
        firmware: ["Dell Inc.", "2.8.2", "08/27/2020"],
        sockets: &[("CPU1", 14, 28), ("CPU2", 14, 28)],
        cpu: ["Intel", "Intel(R) Xeon(R) Gold 5120 CPU @ 2.20GHz", "2.2GHz"],
        modules: &[
            ("A1", "16GiB"),
            ("A2", "16GiB"),
            ("A3", "16GiB"),
            ("A4", "16GiB"),
            ("B1", "16GiB"),
            ("B2", "16GiB"),
            ("B3", "16GiB"),
            ("B4", "16GiB"),
        ],
        memory: ["DDR4", "2133MHz"],
        has_bmc: true,
    },
    Machine {
        dump: "supermicro-x10dal",
        version: "3.0",
        system: ["Supermicro", "Super Server", "0123456789"],
        firmware: ["American Megatrends Inc.", "2.0", "12/18/2015"],
        sockets: &[("CPU1", 6, 6), ("CPU2", 6, 6)],
        cpu: ["Intel", "Intel(R) Xeon(R) CPU E5-2603 v3 @ 1.60GHz", "1.6GHz"],
        modules: &[("P1-DIMMA1", "16GiB")],
        // The module could do 2133.
        memory: ["DDR4", "1600MHz"],
        has_bmc: false,
    },
    Machine {
        dump: "supermicro-x9dbl",
        version: "2.7",
        system: ["Thomas-Krenn.AG", "X9DBL-3F/X9DBL-iF", "9000116105"],
        firmware: ["American Megatrends Inc.", "3.00", "12/06/2013"],
        sockets: &[("SOCKET 0", 4, 4), ("SOCKET 1", 4, 4)],
        cpu: ["Intel", "Intel(R) Xeon(R) CPU E5-2403 v2 @ 1.80GHz", "1.8GHz"],
        modules: &[
            ("P1-DIMM1A", "4GiB"),
            ("P1-DIMM1B", "4GiB"),
            ("P1-DIMM1C", "16GiB"),
            ("P2-DIMM1D", "4GiB"),
            ("P2-DIMM1E", "4GiB"),
            ("P2-DIMM1F", "16GiB"),
        ],
        memory: ["DDR3", "1333MHz"],
        has_bmc: true,
    },
    Machine {
        dump: "synology-rs3614xsp",
        version: "2.7",
        system: ["Synology", "RS3614xs+", "To be filled by O.E.M."],
        firmware: ["American Megatrends Inc.", "0.1.4", "06/08/2015"],
        sockets: &[("SOCKET 0", 4, 8)],
        cpu: ["Intel(R) Corporation", "Intel(R) Xeon(R) CPU E3-1230 V2 @ 3.30GHz", "3.3GHz"],
        modules: &[
            ("ChannelA-DIMM0", "8GiB"),
            ("ChannelA-DIMM1", "8GiB"),
            ("ChannelB-DIMM0", "8GiB"),
            ("ChannelB-DIMM1", "8GiB"),
        ],
        memory: ["DDR3", "1600MHz"],
        has_bmc: false,
    },
    Machine {
        dump: "gigabyte-x399",
        version: "3.1",
        system: ["Gigabyte Technology Co., Ltd.", "X399 AORUS XTREME", "Default string"],
        firmware: ["American Megatrends Inc.", "F4", "10/04/2018"],
        sockets: &[("SP3r2", 32, 64)],
        cpu: ["Advanced Micro Devices, Inc.", "AMD Ryzen Threadripper 2990WX 32-Core Processor", "3.0GHz"],
        modules: &[
            ("P0 CHANNEL A DIMM 0", "16GiB"),
            ("P0 CHANNEL A DIMM 1", "16GiB"),
            ("P0 CHANNEL B DIMM 0", "16GiB"),
            ("P0 CHANNEL B DIMM 1", "16GiB"),
            ("P0 CHANNEL C DIMM 0", "16GiB"),
            ("P0 CHANNEL C DIMM 1", "16GiB"),
            ("P0 CHANNEL D DIMM 0", "16GiB"),
            ("P0 CHANNEL D DIMM 1", "16GiB"),
        ],
        memory: ["DDR4", "2933MHz"],
        has_bmc: false,
    },
    Machine {
        dump: "gigabyte-ma74gmt",
        version: "2.4",
        // The serial number is a space.
        system: ["Gigabyte Technology Co., Ltd.", "GA-MA74GMT-S2", ""],
        firmware: ["Award Software International, Inc.", "F8", "08/03/2010"],
        // Its tables know sockets only, and there is no kernel to ask.
        sockets: &[("Socket M2", 0, 0)],
        cpu: ["AMD", "AMD Athlon(tm) II X2 240 Processor", "2.8GHz"],
        modules: &[("A2", "1GiB"), ("A3", "1GiB")],
        memory: ["Unknown", "1066MHz"],
        has_bmc: false,
    },
    Machine {
        dump: "msi-ms7816",
        version: "2.8",
        system: ["MSI", "MS-7816", "To be filled by O.E.M."],
        firmware: ["American Megatrends Inc.", "V2.14B14", "07/13/2018"],
        sockets: &[("SOCKET 0", 4, 8)],
        cpu: ["Intel", "Intel(R) Core(TM) i7-4770 CPU @ 3.40GHz", "3.4GHz"],
        modules: &[
            ("ChannelA-DIMM0", "8GiB"),
            ("ChannelA-DIMM1", "8GiB"),
            ("ChannelB-DIMM0", "8GiB"),
            ("ChannelB-DIMM1", "8GiB"),
        ],
        memory: ["DDR3", "1600MHz"],
        has_bmc: false,
    },
];

impl Machine {
    /// Entry point and table.
    fn read(&self) -> (Vec<u8>, Vec<u8>) {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/facts/tests/fixtures/smbios");
        let mut entry = fs::read(fixtures.join(self.dump).with_extension("bin")).unwrap();
        let table = entry.split_off(TABLE);
        (entry, table)
    }

    fn cpus(&self) -> Vec<Cpu> {
        let [vendor, model, frequency] = self.cpu.map(str::to_owned);
        let of = |(id, cores, threads): &(&str, i32, i32)| Cpu {
            id: (*id).to_owned(),
            vendor: vendor.clone(),
            model: model.clone(),
            cores: *cores,
            threads: *threads,
            frequency: frequency.clone(),
        };
        self.sockets.iter().map(of).collect()
    }

    fn memory(&self) -> Vec<MemoryModule> {
        let [kind, speed] = self.memory.map(str::to_owned);
        let of = |(id, capacity): &(&str, &str)| MemoryModule {
            id: (*id).to_owned(),
            kind: kind.clone(),
            capacity: (*capacity).to_owned(),
            speed: speed.clone(),
        };
        self.modules.iter().map(of).collect()
    }
}

/// A machine of which there is nothing but its tables.
fn root_of(entry: &[u8], table: &[u8]) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), "sys/firmware/dmi/tables/DMI", table);
    write(root.path(), "sys/firmware/dmi/tables/smbios_entry_point", entry);
    root
}

/// What the collectors make of a table alone.
#[derive(Debug, PartialEq)]
struct Told {
    system: System,
    cpus: Vec<Cpu>,
    memory: Vec<MemoryModule>,
    management: Option<management::Management>,
}

fn told(table: &[u8]) -> Told {
    let nothing = PathBuf::from("/nonesuch");
    Told {
        system: system(table, &nothing),
        cpus: cpu::cpus(table, &nothing),
        memory: memory::modules(table, &nothing),
        management: management::controller(table),
    }
}

impl Told {
    /// Whether everything that is told here is told there, at least to where the table was cut.
    fn is_part_of(&self, whole: &Self) -> bool {
        let texts = |s: &System| {
            let s = s.clone();
            [s.manufacturer, s.model, s.serial, s.firmware, s.firmware_vendor, s.firmware_date]
        };
        let starts = |(part, whole): (&String, &String)| whole.starts_with(part.as_str());
        texts(&self.system).iter().zip(&texts(&whole.system)).all(starts)
            && self.cpus.len() <= whole.cpus.len()
            && self.cpus.iter().zip(&whole.cpus).enumerate().all(|(n, (part, whole))| {
                let is_last = n + 1 == self.cpus.len();
                part == whole
                    || is_last
                        && [(&part.id, &whole.id), (&part.vendor, &whole.vendor), (&part.model, &whole.model)]
                            .into_iter()
                            .all(starts)
                        && part.cores <= whole.cores
                        && part.threads <= whole.threads
                        && [&String::new(), &whole.frequency].contains(&&part.frequency)
            })
            && self.memory.len() <= whole.memory.len()
            && self.memory.iter().zip(&whole.memory).all(|(part, whole)| {
                is_cut_of(&part.id, &whole.id)
                    && part.capacity == whole.capacity
                    && ["Unknown", &whole.kind].contains(&part.kind.as_str())
            })
            && self.management.as_ref().is_none_or(|part| {
                whole.management.as_ref().is_some_and(|whole| {
                    let is = |part: &Option<String>, whole: &Option<String>| part.is_none() || part == whole;
                    (part.ipmi_interface.is_none() || part.ipmi_interface == whole.ipmi_interface)
                        && is(&part.ipmi_version, &whole.ipmi_version)
                        && is(&part.host_interface_address, &whole.host_interface_address)
                })
            })
    }
}

/// Whether `part` is what may be left of a slot's name when its bank or its own name is cut, or its bank is not yet
/// needed to tell it apart.
fn is_cut_of(part: &str, whole: &str) -> bool {
    let is_head_and_tail = |at| whole.starts_with(&part[..at]) && whole.ends_with(&part[at..]);
    whole.contains(part) || (0..part.len()).any(is_head_and_tail)
}

/// Where each structure of a table begins: found by length and double zero, as the standard has it.
fn starts(table: &[u8]) -> Vec<usize> {
    let (mut all, mut at) = (vec![], 0);
    while at + 4 <= table.len() && table[at] != 127 {
        all.push(at);
        let strings = at + usize::from(table[at + 1]);
        at = strings + table[strings..].windows(2).position(|pair| pair == [0, 0]).unwrap() + 2;
    }
    all
}

#[test]
fn each_machine_is_told_as_dmidecode_shows_it() {
    for machine in MACHINES {
        let (entry, table) = machine.read();
        let report = collect(root_of(&entry, &table).path()).report;
        let farrier = report.farrier.unwrap();
        let name = machine.dump;
        assert_eq!([&*report.manufacturer, &*report.model, &*report.serial_number], machine.system, "{name}");
        assert_eq!(report.firmware_version, machine.firmware[1], "{name}");
        assert_eq!(farrier["firmwareVendor"], machine.firmware[0], "{name}");
        assert_eq!(farrier["firmwareDate"], machine.firmware[2], "{name}");
        assert_eq!(farrier["smbiosVersion"], machine.version, "{name}");
        assert_eq!(report.cpus, machine.cpus(), "{name}");
        assert_eq!(report.memory, machine.memory(), "{name}");
        let bmc = machine.has_bmc.then(|| json!({"ipmiInterface": "KCS", "ipmiVersion": "2.0"}));
        assert_eq!(farrier["bmc"], bmc.unwrap_or_default(), "{name}");
    }
}

#[test]
fn a_table_cut_anywhere_tells_no_more_than_the_whole_one() {
    for machine in MACHINES {
        let (_, table) = machine.read();
        let whole = told(&table);
        for cut in 0..=table.len() {
            let part = told(&table[..cut]);
            assert!(part.is_part_of(&whole), "{} cut at {cut}: {part:#?}", machine.dump);
        }
        assert_eq!(told(&table), whole);
    }
}

#[test]
fn a_structure_shorter_than_its_header_ends_the_table() {
    for machine in MACHINES {
        let (_, table) = machine.read();
        for at in starts(&table) {
            let before = told(&table[..at]);
            for length in 0..4 {
                let mut broken = table.clone();
                broken[at + 1] = length;
                assert_eq!(told(&broken), before, "{} at {at}: length {length}", machine.dump);
            }
        }
    }
}

#[test]
fn a_structure_that_claims_to_be_longer_takes_nothing_from_those_before_it() {
    for machine in MACHINES {
        let (_, table) = machine.read();
        for at in starts(&table) {
            let mut broken = table.clone();
            broken[at + 1] = 255;
            let (before, told) = (told(&table[..at]), told(&broken));
            assert!(before.is_part_of(&told), "{} at {at}: {told:#?}", machine.dump);
        }
    }
}

#[test]
fn strings_without_end_take_nothing_from_the_structures_before_them() {
    for machine in MACHINES {
        let (_, table) = machine.read();
        for pair in starts(&table).windows(2) {
            let (at, next) = (pair[0], pair[1]);
            let mut broken = table.clone();
            broken.remove(next - 1);
            let before = told(&table[..at]);
            assert!(before.is_part_of(&told(&broken)), "{} at {at}", machine.dump);
        }
        // The last structure of all, whose two zeroes are the last bytes of the table.
        let end = table.len() - table.iter().rev().take_while(|byte| **byte == 0).count();
        assert_eq!(told(&table[..end]), told(&table), "{}", machine.dump);
    }
}

#[test]
fn a_wrong_count_of_structures_changes_nothing() {
    for machine in MACHINES {
        let (entry, table) = machine.read();
        let root = root_of(&entry, &table);
        let honest = collect(root.path()).report;
        // Count and length of the table in the entry point of 32 bits, its size in that of 64.
        let at = if entry.starts_with(b"_SM3_") { 12..16 } else { 28..30 };
        for byte in [0, 1, 0xff] {
            let mut lying = entry.clone();
            lying[at.clone()].fill(byte);
            write(root.path(), "sys/firmware/dmi/tables/smbios_entry_point", lying);
            assert_eq!(collect(root.path()).report, honest, "{}: {byte}", machine.dump);
        }
    }
}

#[test]
fn without_tables_the_kernels_copy_serves_and_a_note_says_so() {
    let root = tempfile::tempdir().unwrap();
    for (file, text) in [("sys_vendor", "Dell Inc."), ("product_name", "PowerEdge R910")] {
        write(root.path(), &format!("sys/class/dmi/id/{file}"), format!("{text}\n"));
    }
    let report = collect(root.path()).report;
    assert_eq!((report.manufacturer.as_str(), report.model.as_str()), ("Dell Inc.", "PowerEdge R910"));
    let notes = report.farrier.unwrap()["notes"].to_string();
    assert!(notes.contains("SMBIOS table not read"), "{notes}");
}

proptest! {
    #[test]
    fn a_table_with_wrong_bytes_is_read_without_a_fault(
        machine in 0..MACHINES.len(),
        wrong in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
    ) {
        let (_, mut table) = MACHINES[machine].read();
        for (at, byte) in wrong {
            let at = at.index(table.len());
            table[at] = byte;
        }
        let told = told(&table);
        prop_assert!(told.cpus.len() <= table.len() / 4 && told.memory.len() <= table.len() / 4);
    }
}
