//! Processors: SMBIOS type 4, else what the kernel counts.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use farrier_shared::contract::report::Cpu;

use super::smbios::{Structure, structures};

const PROCESSOR: u8 = 4;
/// Processor type "central": the others are math and video processors of another age.
const CENTRAL: u8 = 3;
/// Status bit "socket populated".
const POPULATED: u8 = 0x40;
/// Counts of a byte that mean "see the word".
const SEE_WORD: u8 = 0xff;

/// One entry for each populated package.
pub(super) fn cpus(table: &[u8], root: &Path) -> Vec<Cpu> {
    let counted = from_proc(root);
    let mut cpus: Vec<Cpu> = structures(table)
        .filter(|s| s.kind == PROCESSOR && s.byte(0x05) == Some(CENTRAL))
        .filter(|s| s.byte(0x18).is_some_and(|status| status & POPULATED != 0))
        .map(|s| read(&s))
        .collect();
    if cpus.is_empty() {
        return counted;
    }
    // Old firmware tells sockets but not cores.
    for (cpu, real) in cpus.iter_mut().zip(&counted) {
        if cpu.cores == 0 {
            cpu.cores = real.cores;
        }
        if cpu.threads == 0 {
            cpu.threads = real.threads.max(cpu.cores);
        }
        if cpu.model.is_empty() {
            cpu.model.clone_from(&real.model);
        }
    }
    cpus
}

fn read(s: &Structure<'_>) -> Cpu {
    let count = |byte: usize, word: usize| match s.byte(byte) {
        Some(SEE_WORD) => i32::from(s.word(word).unwrap_or(u16::from(SEE_WORD))),
        Some(n) => i32::from(n),
        None => 0,
    };
    let mhz = [0x16, 0x14].into_iter().filter_map(|at| s.word(at)).find(|mhz| *mhz != 0);
    Cpu {
        id: s.string(0x04),
        vendor: s.string(0x07),
        model: s.string(0x10),
        cores: count(0x23, 0x2a),
        threads: count(0x25, 0x2e),
        frequency: mhz.map(|mhz| frequency(f64::from(mhz))).unwrap_or_default(),
    }
}

fn frequency(mhz: f64) -> String {
    format!("{:.1}GHz", mhz / 1000.0)
}

/// Packages, cores and threads as `/proc/cpuinfo` lists them.
fn from_proc(root: &Path) -> Vec<Cpu> {
    let text = fs::read_to_string(root.join("proc/cpuinfo")).unwrap_or_default();
    let mut packages: BTreeMap<u32, (Cpu, Vec<String>)> = BTreeMap::new();
    for block in text.split("\n\n").filter(|b| !b.trim().is_empty()) {
        let field = |name: &str| {
            block.lines().find_map(|line| {
                let (key, value) = line.split_once(':')?;
                (key.trim() == name).then(|| value.trim().to_owned())
            })
        };
        let Some(processor) = field("processor") else { continue };
        let package = field("physical id").and_then(|id| id.parse().ok()).unwrap_or(0);
        let (cpu, cores) = packages.entry(package).or_default();
        cpu.id = format!("CPU {package}");
        cpu.vendor = field("vendor_id").unwrap_or_default();
        cpu.model = field("model name").unwrap_or_default();
        cpu.threads = cpu.threads.saturating_add(1);
        if let Some(mhz) = field("cpu MHz").and_then(|t| t.parse::<f64>().ok()) {
            cpu.frequency = frequency(mhz);
        }
        let core = field("core id").unwrap_or(processor);
        if !cores.contains(&core) {
            cores.push(core);
        }
    }
    packages
        .into_values()
        .map(|(cpu, cores)| Cpu { cores: i32::try_from(cores.len()).unwrap_or(i32::MAX), ..cpu })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::smbios::build::structure;

    /// The body of a type 4 structure, up to and including the two-byte counts.
    fn body(kind: u8, status: u8, cores: u8, threads: u8) -> Vec<u8> {
        let mut body = vec![0_u8; 0x30 - 4];
        let mut put = |at: usize, bytes: &[u8]| body[at - 4..at - 4 + bytes.len()].copy_from_slice(bytes);
        put(0x04, &[1, kind]);
        put(0x07, &[2]);
        put(0x10, &[3]);
        put(0x14, &4000_u16.to_le_bytes());
        put(0x16, &2000_u16.to_le_bytes());
        put(0x18, &[status]);
        put(0x23, &[cores]);
        put(0x25, &[threads]);
        put(0x2a, &288_u16.to_le_bytes());
        put(0x2e, &576_u16.to_le_bytes());
        body
    }

    const NAMES: [&str; 3] = ["CPU 0", "QEMU", "pc-q35-7.2"];

    fn none() -> tempfile::TempDir {
        tempfile::tempdir().unwrap()
    }

    #[test]
    fn a_populated_central_processor_is_told() {
        let cpus = cpus(&structure(4, &body(3, 0x41, 4, 8), &NAMES), none().path());
        let expected = Cpu {
            id: "CPU 0".into(),
            vendor: "QEMU".into(),
            model: "pc-q35-7.2".into(),
            cores: 4,
            threads: 8,
            frequency: "2.0GHz".into(),
        };
        assert_eq!(cpus, [expected]);
    }

    #[test]
    fn counts_beyond_a_byte_come_from_the_word() {
        let cpus = cpus(&structure(4, &body(3, 0x41, 0xff, 0xff), &NAMES), none().path());
        assert_eq!((cpus[0].cores, cpus[0].threads), (288, 576));
    }

    #[test]
    fn empty_sockets_and_other_processors_do_not_count() {
        let table =
            [structure(4, &body(3, 0x01, 4, 8), &NAMES), structure(4, &body(4, 0x41, 4, 8), &NAMES)].concat();
        assert!(cpus(&table, none().path()).is_empty());
    }

    #[test]
    fn the_kernels_count_fills_in() {
        let root = none();
        fs::create_dir_all(root.path().join("proc")).unwrap();
        let block = |n: u32, package: u32, core: u32| {
            format!(
                "processor\t: {n}\nvendor_id\t: GenuineIntel\nmodel name\t: Xeon\ncpu MHz\t\t: 2999.998\n\
                 physical id\t: {package}\ncore id\t\t: {core}\n\n"
            )
        };
        let text: String =
            [(0, 0, 0), (1, 0, 0), (2, 0, 1), (3, 1, 0)].map(|(n, p, c)| block(n, p, c)).concat();
        fs::write(root.path().join("proc/cpuinfo"), text).unwrap();
        let counted = cpus(&[], root.path());
        assert_eq!(counted.len(), 2);
        assert_eq!((counted[0].cores, counted[0].threads, counted[1].cores), (2, 3, 1));
        assert_eq!(counted[0].frequency, "3.0GHz");
        let mut short = body(3, 0x41, 0, 0);
        short.truncate(0x20 - 4);
        let old = cpus(&structure(4, &short, &NAMES), root.path());
        assert_eq!((old[0].cores, old[0].threads, old[0].model.as_str()), (2, 3, "pc-q35-7.2"));
    }
}
