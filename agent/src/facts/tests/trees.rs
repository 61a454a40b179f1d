//! `/sys` and `/proc` of machines that exist (`fixtures/README.md`).

use std::path::Path;
use std::process::Command;

use farrier_shared::contract::InspectionReport;
use serde_json::{Value, json};

use super::{collect, write};

/// Name, address, driver, speed, whether a cable leads to something, PCI address.
type Card = (&'static str, &'static str, &'static str, &'static str, Option<bool>, &'static str);

/// What a tree says of a machine without SMBIOS tables.
struct Machine {
    tree: &'static str,
    /// Manufacturer, model, firmware version.
    system: [&'static str; 3],
    /// Packages, cores and threads of each, model.
    cpus: (usize, i32, i32, &'static str),
    /// What is installed or, where the tree has no memory blocks, what is managed.
    memory: &'static str,
    /// Number, processors, kilobytes.
    nodes: &'static [(u32, &'static str, u64)],
    nics: &'static [Card],
    /// Name, model, gigabytes, kind.
    disks: &'static [(&'static str, &'static str, i32, &'static str)],
    /// How many PCI devices, and where the graphics cards are.
    pci: (usize, &'static [&'static str]),
}

const MACHINES: &[Machine] = &[
    Machine {
        tree: "dell-r910",
        system: ["Dell Inc.", "PowerEdge R910", "2.5.0"],
        cpus: (4, 10, 10, "Intel(R) Xeon(R) CPU E7- 4870  @ 2.40GHz"),
        memory: "517019MiB",
        nodes: &[
            (0, "0,4,8,12,16,20,24,28,32,36", 134_204_252),
            (1, "1,5,9,13,17,21,25,29,33,37", 134_217_728),
            (2, "2,6,10,14,18,22,26,30,34,38", 134_217_728),
            (3, "3,7,11,15,19,23,27,31,35,39", 134_217_728),
        ],
        // InfiniBand and the loopback are none.
        nics: &[
            ("eth0", "78:2b:cb:38:ac:1b", "bnx2", "1Gbps", Some(true), "0000:02:00.0"),
            ("eth1", "78:2b:cb:38:ac:1d", "bnx2", "", None, "0000:02:00.1"),
            ("eth2", "78:2b:cb:38:ac:1f", "bnx2", "", None, "0000:03:00.0"),
            ("eth3", "78:2b:cb:38:ac:21", "bnx2", "", None, "0000:03:00.1"),
        ],
        // The DVD drive is none.
        disks: &[("sda", "PERC H700", 1798, "HDD")],
        pci: (37, &["0000:09:03.0"]),
    },
    Machine {
        tree: "dell-dcs8000z",
        system: ["Dell", "DCS8000Z", "1.0.30"],
        cpus: (2, 8, 8, "Intel(R) Xeon(R) CPU E5-2680 0 @ 2.70GHz"),
        memory: "32066MiB",
        nodes: &[(0, "0-7", 16_747_124), (1, "8-15", 16_777_216)],
        // Neither are the bridge, the VLAN and the coprocessor's own interface.
        nics: &[
            ("eth0", "84:8f:69:fe:cc:40", "igb", "1Gbps", Some(true), "0000:02:00.0"),
            ("eth1", "84:8f:69:fe:cc:41", "igb", "", None, "0000:02:00.3"),
        ],
        disks: &[("sda", "ST9250610NS", 250, "HDD")],
        pci: (137, &["0000:05:00.0"]),
    },
    Machine {
        tree: "dell-c6145",
        system: ["Dell", "PowerEdge C6145", "2.5.91"],
        cpus: (4, 8, 16, "AMD Opteron(TM) Processor 6276"),
        memory: "121088MiB",
        nodes: &[
            (0, "0-7", 16_769_836),
            (1, "8-15", 16_777_216),
            (2, "16-23", 16_777_216),
            (3, "24-31", 16_777_216),
            (4, "32-39", 16_777_216),
            (5, "40-47", 8_388_608),
            (6, "48-55", 16_777_216),
            (7, "56-63", 16_760_832),
        ],
        nics: &[],
        disks: &[],
        pci: (0, &[]),
    },
    Machine {
        tree: "dell-r630-offline",
        system: ["Dell Inc.", "PowerEdge R630", "2.12.1"],
        cpus: (2, 12, 12, "Intel(R) Xeon(R) CPU E5-2680 v3 @ 2.50GHz"),
        memory: "128649MiB",
        nodes: &[(1, "1,3,5,7,9,11,13,15,17,19,21,23", 67_108_864)],
        nics: &[],
        disks: &[],
        pci: (0, &[]),
    },
    Machine {
        tree: "sgi-altix-xe320",
        system: ["SGI.COM", "AltixXE320", ".0b"],
        cpus: (2, 4, 4, "Intel(R) Xeon(R) CPU           E5472  @ 3.00GHz"),
        memory: "15949MiB",
        // Told as the kernel tells it, wrong as it is.
        nodes: &[
            (0, "0-7", 2_096_684),
            (1, "0-7", 2_096_128),
            (2, "0-7", 2_097_152),
            (3, "0-7", 2_097_152),
            (4, "0-7", 2_097_152),
            (5, "0-7", 2_097_152),
            (6, "0-7", 2_097_152),
            (7, "0-7", 2_097_152),
        ],
        nics: &[],
        disks: &[],
        pci: (0, &[]),
    },
    Machine {
        tree: "nec-sx-aurora",
        // The dump lacks the link that leads there.
        system: ["", "", ""],
        cpus: (2, 8, 16, "Intel(R) Xeon(R) Silver 4108 CPU @ 1.80GHz"),
        memory: "95161MiB",
        nodes: &[(0, "0-7,16-23", 47_925_628), (1, "8-15,24-31", 49_519_964)],
        nics: &[
            ("enp96s0f0", "ac:1f:6b:8a:5f:c8", "i40e", "1Gbps", Some(true), "0000:60:00.0"),
            ("enp96s0f1", "ac:1f:6b:8a:5f:c9", "i40e", "", None, "0000:60:00.1"),
        ],
        disks: &[],
        pci: (28, &[]),
    },
    Machine {
        tree: "qemu-memory-tiers",
        system: ["QEMU", "Standard PC (i440FX + PIIX, 1996)", "0.0.0"],
        cpus: (1, 6, 6, "QEMU Virtual CPU version 2.5+"),
        memory: "6107MiB",
        nodes: &[
            (0, "0-1", 3_005_392),
            (1, "2-3", 1_002_460),
            (2, "4-5", 524_288),
            (4, "", 524_288),
            (6, "", 393_216),
            (8, "", 393_216),
            (9, "", 393_216),
        ],
        nics: &[],
        disks: &[],
        pci: (0, &[]),
    },
    Machine {
        tree: "xeon-l5640",
        system: ["", "", ""],
        cpus: (2, 6, 12, "Intel(R) Xeon(R) CPU           L5640  @ 2.27GHz"),
        // Its memory blocks span 66.
        memory: "64GiB",
        nodes: &[
            (0, "0,2,4,6,8,10,12,14,16,18,20,22", 32_980_312),
            (1, "1,3,5,7,9,11,13,15,17,19,21,23", 32_940_968),
        ],
        nics: &[],
        // The dump lacks what makes a block device hardware.
        disks: &[],
        pci: (82, &["0000:07:03.0"]),
    },
];

/// The tree, below a root of its own.
fn unpack(tree: &str) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/facts/tests/fixtures/sysfs");
    let archive = fixtures.join(format!("{tree}.tar.gz"));
    let done = Command::new("tar").arg("-xzf").arg(&archive).arg("-C").arg(root.path()).status();
    assert!(done.unwrap().success(), "{}", archive.display());
    root
}

fn each() -> impl Iterator<Item = (&'static Machine, tempfile::TempDir)> {
    MACHINES.iter().map(|machine| (machine, unpack(machine.tree)))
}

fn look(root: &Path) -> (InspectionReport, Value) {
    let report = collect(root).report;
    let farrier = report.farrier.clone().unwrap();
    (report, farrier)
}

#[test]
fn makers_processors_and_memory_are_told_as_the_kernel_counts_them() {
    for (machine, root) in each() {
        let (report, _) = look(root.path());
        let name = machine.tree;
        assert_eq!(
            [&*report.manufacturer, &*report.model, &*report.firmware_version],
            machine.system,
            "{name}"
        );
        let (packages, cores, threads, model) = machine.cpus;
        assert_eq!(report.cpus.len(), packages, "{name}");
        for (number, cpu) in report.cpus.iter().enumerate() {
            let found = (cpu.id.as_str(), cpu.cores, cpu.threads, cpu.model.as_str());
            assert_eq!(found, (format!("CPU {number}").as_str(), cores, threads, model), "{name}");
        }
        let memory: Vec<_> = report.memory.iter().map(|m| m.capacity.as_str()).collect();
        assert_eq!(memory, [machine.memory], "{name}");
    }
}

#[test]
fn nodes_are_told_with_their_processors_and_memory() {
    for (machine, root) in each() {
        let node = |(node, cpus, kilobytes): &(u32, &str, u64)| json!({"node": node, "cpus": cpus, "memoryBytes": kilobytes * 1024});
        let nodes: Vec<_> = machine.nodes.iter().map(node).collect();
        assert_eq!(look(root.path()).1["numa"], json!(nodes), "{}", machine.tree);
    }
}

#[test]
fn network_cards_are_told_and_nothing_else_that_is_called_an_interface() {
    for (machine, root) in each() {
        let (report, farrier) = look(root.path());
        let found: Vec<_> = report
            .nics
            .iter()
            .map(|n| (n.name.as_str(), n.mac_address.as_str(), n.driver.as_str(), n.speed.as_str()))
            .collect();
        let nics = machine.nics.iter();
        let expected: Vec<_> = nics.clone().map(|n| (n.0, n.1, n.2, n.3)).collect();
        assert_eq!(found, expected, "{}", machine.tree);
        assert!(report.nics.iter().all(|nic| nic.ip_addresses.is_empty()), "addresses of another machine");
        let details: Vec<_> = nics
            .map(|n| json!({"name": n.0, "permanentMac": null, "carrier": n.4, "pciAddress": n.5}))
            .collect();
        assert_eq!(farrier["nics"], json!(details), "{}", machine.tree);
    }
}

#[test]
fn disks_are_told_and_drives_are_not() {
    for (machine, root) in each() {
        let (report, farrier) = look(root.path());
        let dev = root.path().join("dev");
        let path = |name: &str| dev.join(name).display().to_string();
        let found: Vec<_> = report
            .disks
            .iter()
            .map(|d| (d.name.clone(), d.model.as_str(), d.size_gb, d.kind.as_str()))
            .collect();
        let expected: Vec<_> = machine.disks.iter().map(|d| (path(d.0), d.1, d.2, d.3)).collect();
        assert_eq!(found, expected, "{}", machine.tree);
        for detail in farrier["disks"].as_array().unwrap() {
            let sectors = (&detail["logicalSectorBytes"], &detail["physicalSectorBytes"]);
            assert_eq!(sectors, (&json!(512), &json!(512)), "{}", machine.tree);
            assert_eq!(detail["refusal"], json!(null), "{}", machine.tree);
        }
    }
}

#[test]
fn devices_of_the_bus_are_told_with_their_drivers() {
    for (machine, root) in each() {
        let (_, farrier) = look(root.path());
        let (count, graphics) = machine.pci;
        assert_eq!(farrier["pci"].as_array().unwrap().len(), count, "{}", machine.tree);
        let gpus = farrier["gpus"].as_array().unwrap().iter();
        let gpus: Vec<_> = gpus.map(|gpu| gpu["address"].as_str().unwrap()).collect();
        assert_eq!(gpus, graphics, "{}", machine.tree);
    }
    let (_, farrier) = look(unpack("dell-r910").path());
    let bridge = json!({"address": "0000:00:03.0", "vendor": "8086", "device": "340a", "class": "060400", "driver": "pcieport"});
    assert_eq!(farrier["pci"][1], bridge);
}

/// Every file of a tree emptied, one kind after the other, is a tree of a kernel that does not tell: the rest counts.
#[test]
fn files_that_say_nothing_take_nothing_from_the_others() {
    let (whole, facts) = look(unpack("dell-r910").path());
    for (file, text) in [
        ("proc/cpuinfo", ""),
        ("proc/cpuinfo", "processor: x\nphysical id: -1\n\n\n:\n"),
        ("proc/meminfo", "MemTotal: many kB\n"),
        ("sys/devices/system/node/node2/cpulist", ""),
        ("sys/devices/system/node/node2/meminfo", "Node 2 MemTotal:"),
        ("sys/bus/pci/devices/0000:00:03.0/class", "?"),
        ("sys/class/net/eth1/address", "none"),
        ("sys/class/net/eth1/ifindex", "-1"),
        ("sys/class/net/eth0/speed", "99999999999999999999"),
        ("sys/block/sda/size", "many"),
        ("sys/block/sda/queue/logical_block_size", "0x200"),
        ("sys/block/sda/device/model", "\0"),
    ] {
        let root = unpack("dell-r910");
        write(root.path(), file, text);
        let (report, told) = look(root.path());
        assert_eq!((&report.manufacturer, &report.model), (&whole.manufacturer, &whole.model), "{file}");
        let counts = |report: &InspectionReport, facts: &Value| {
            let of = |key: &str| facts[key].as_array().unwrap().len();
            [
                report.cpus.len(),
                report.memory.len(),
                report.disks.len(),
                report.nics.len(),
                of("numa"),
                of("pci"),
            ]
        };
        let (before, after) = (counts(&whole, &facts), counts(&report, &told));
        let lost: usize = before.iter().zip(after).map(|(before, after)| before.abs_diff(after)).sum();
        let bound = if file == "proc/cpuinfo" { 4 } else { 1 };
        assert!(lost <= bound, "{file}: {before:?} became {after:?}");
    }
}
