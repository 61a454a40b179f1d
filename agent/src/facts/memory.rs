//! Memory modules: SMBIOS type 17, else the whole of what the kernel manages as one module.

use std::fs;
use std::path::Path;

use farrier_shared::contract::report::MemoryModule;

use super::smbios::{Structure, structures};

const DEVICE: u8 = 17;
/// Size: none, unknown, and "see the double word".
const NO_MODULE: u16 = 0;
const UNKNOWN: u16 = 0xffff;
const SEE_DWORD: u16 = 0x7fff;
/// Set when a size is in KiB instead of MiB.
const IN_KIB: u16 = 0x8000;
/// Reserved in the double word.
const DWORD_MASK: u32 = 0x7fff_ffff;

/// One entry for each populated module.
pub(super) fn modules(table: &[u8], root: &Path) -> Vec<MemoryModule> {
    let found: Vec<_> = structures(table)
        .filter(|s| s.kind == DEVICE)
        .filter_map(|s| Some((read(&s)?, s.string(0x11))))
        .collect();
    if found.is_empty() {
        return from_kernel(root).into_iter().collect();
    }
    let is_shared = |id: &str| found.iter().filter(|(other, _)| other.id == id).count() > 1;
    let named = |(module, bank): &(MemoryModule, String)| match is_shared(&module.id) {
        // Some boards number the slots of each channel anew: there only both names are one.
        true if *bank != module.id => {
            MemoryModule { id: format!("{bank} {}", module.id).trim().to_owned(), ..module.clone() }
        }
        _ => module.clone(),
    };
    found.iter().map(named).collect()
}

fn read(s: &Structure<'_>) -> Option<MemoryModule> {
    let mib = match s.word(0x0c)? {
        NO_MODULE | UNKNOWN => return None,
        SEE_DWORD => u64::from(s.dword(0x1c)? & DWORD_MASK),
        size if size & IN_KIB != 0 => u64::from(size & !IN_KIB) / 1024,
        size => u64::from(size),
    };
    let id = match (s.string(0x10), s.string(0x11)) {
        (slot, bank) if slot.is_empty() => bank,
        (slot, _) => slot,
    };
    // Configured speed where it is known, else what the module could do.
    let speed = [(0x20, 0x58), (0x15, 0x54)].into_iter().find_map(|(word, dword)| match s.word(word)? {
        0 => None,
        0xffff => s.dword(dword).filter(|mts| *mts != 0),
        mts => Some(u32::from(mts)),
    });
    (mib > 0).then(|| MemoryModule {
        id,
        kind: technology(s.byte(0x12).unwrap_or(2)).to_owned(),
        capacity: capacity(mib),
        speed: speed.map(|mts| format!("{mts}MHz")).unwrap_or_default(),
    })
}

/// In GiB when that is a whole number, else in MiB.
fn capacity(mib: u64) -> String {
    if mib.is_multiple_of(1024) { format!("{}GiB", mib / 1024) } else { format!("{mib}MiB") }
}

/// DSP0134, table of memory device types.
fn technology(code: u8) -> &'static str {
    match code {
        0x03 => "DRAM",
        0x07 => "RAM",
        0x0f => "SDRAM",
        0x12 => "DDR",
        0x13 | 0x14 => "DDR2",
        0x18 => "DDR3",
        0x1a => "DDR4",
        0x1b => "LPDDR",
        0x1c => "LPDDR2",
        0x1d => "LPDDR3",
        0x1e => "LPDDR4",
        0x20 => "HBM",
        0x21 => "HBM2",
        0x22 => "DDR5",
        0x23 => "LPDDR5",
        0x24 => "HBM3",
        _ => "Unknown",
    }
}

/// What was installed, as far as the kernel knows: it manages less, since firmware and kernel keep some, and the
/// memory blocks that are online span more, since those around a hole are not full.
fn from_kernel(root: &Path) -> Option<MemoryModule> {
    let mib = match (total_mib(root), blocks_mib(root)) {
        (Some(managed), Some(spanned)) if spanned > managed => roundest(managed, spanned),
        (managed, spanned) => spanned.or(managed)?,
    };
    if mib == 0 {
        return None;
    }
    Some(MemoryModule {
        id: "System Memory".to_owned(),
        kind: technology(2).to_owned(),
        capacity: capacity(mib),
        speed: String::new(),
    })
}

/// The number beyond `low` and up to `high` that the highest power of two divides.
fn roundest(low: u64, high: u64) -> u64 {
    let mut multiples = (0..u64::BITS).rev().map(|power| high >> power << power);
    multiples.find(|multiple| *multiple > low).unwrap_or(high)
}

fn blocks_mib(root: &Path) -> Option<u64> {
    let dir = root.join("sys/devices/system/memory");
    let size = fs::read_to_string(dir.join("block_size_bytes")).ok()?;
    let size = u64::from_str_radix(size.trim(), 16).ok()?;
    let online = fs::read_dir(&dir)
        .ok()?
        .flatten()
        .filter(|e| e.file_name().to_string_lossy().starts_with("memory"))
        .filter(|e| fs::read_to_string(e.path().join("state")).is_ok_and(|s| s.trim() == "online"))
        .count();
    Some(size.checked_mul(u64::try_from(online).ok()?)? >> 20)
}

fn total_mib(root: &Path) -> Option<u64> {
    let text = fs::read_to_string(root.join("proc/meminfo")).ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix("MemTotal:"))?;
    Some(line.trim().trim_end_matches("kB").trim().parse::<u64>().ok()? / 1024)
}

#[cfg(test)]
mod tests {
    use farrier_shared::contract::capacity::gigabytes;

    use super::*;
    use crate::facts::smbios::build::structure;

    fn body(size: u16, extended: u32, speed: u16) -> Vec<u8> {
        let mut body = vec![0_u8; 0x5c - 4];
        let mut put = |at: usize, bytes: &[u8]| body[at - 4..at - 4 + bytes.len()].copy_from_slice(bytes);
        put(0x0c, &size.to_le_bytes());
        put(0x10, &[1, 2, 0x1a]);
        put(0x15, &3200_u16.to_le_bytes());
        put(0x1c, &extended.to_le_bytes());
        put(0x20, &speed.to_le_bytes());
        put(0x58, &8800_u32.to_le_bytes());
        body
    }

    fn one(size: u16, extended: u32, speed: u16) -> Vec<MemoryModule> {
        modules(&structure(17, &body(size, extended, speed), &["DIMM 0", "BANK 0"]), Path::new("/nonesuch"))
    }

    #[test]
    fn sizes_in_every_encoding() {
        for (size, extended, expected) in [
            (2048, 0, "2GiB"),
            (1536, 0, "1536MiB"),
            (0x8000 | 2048, 0, "2MiB"),
            (0x7fff, 65_536, "64GiB"),
            (0x7fff, 0x8000_8000, "32GiB"),
        ] {
            let found = one(size, extended, 2933);
            assert_eq!(found[0].capacity, expected);
            assert!(gigabytes(&found[0].capacity).is_ok());
        }
    }

    #[test]
    fn empty_slots_and_unknown_sizes_do_not_count() {
        assert!(one(0, 0, 0).is_empty());
        assert!(one(0xffff, 0, 0).is_empty());
        assert!(one(0x7fff, 0x8000_0000, 0).is_empty());
    }

    #[test]
    fn the_configured_speed_comes_first() {
        assert_eq!(one(1024, 0, 2933)[0].speed, "2933MHz");
        assert_eq!(one(1024, 0, 0)[0].speed, "3200MHz");
        assert_eq!(one(1024, 0, 0xffff)[0].speed, "8800MHz");
        assert_eq!(one(1024, 0, 0)[0].kind, "DDR4");
        assert_eq!(one(1024, 0, 0)[0].id, "DIMM 0");
    }

    #[test]
    fn slots_of_one_name_are_told_apart_by_their_bank() {
        let slot = |strings: [&str; 2]| structure(17, &body(1024, 0, 0), &strings);
        let ids = |table: &[u8]| -> Vec<String> {
            modules(table, Path::new("/nonesuch")).into_iter().map(|module| module.id).collect()
        };
        let table = [
            slot(["DIMM 0", "P0 CHANNEL A"]),
            slot(["DIMM 1", "P0 CHANNEL A"]),
            slot(["DIMM 0", "P0 CHANNEL B"]),
        ]
        .concat();
        assert_eq!(ids(&table), ["P0 CHANNEL A DIMM 0", "DIMM 1", "P0 CHANNEL B DIMM 0"]);
        let nameless = [slot(["DIMM", " "]), slot(["DIMM", " "])].concat();
        assert_eq!(ids(&nameless), ["DIMM", "DIMM"]);
        let banks_alone = [slot([" ", "BANK 0"]), slot([" ", "BANK 0"])].concat();
        assert_eq!(ids(&banks_alone), ["BANK 0", "BANK 0"]);
    }

    #[test]
    fn what_was_installed_is_a_round_number_between_what_is_managed_and_what_is_spanned() {
        // In MiB, with blocks of 128 MiB to 2 GiB.
        for (managed, spanned, installed) in [
            (64_376, 67_584, 65_536),
            (1980, 2048, 2048),
            (2830, 3072, 3072),
            (96_400, 100_352, 98_304),
            (11_900, 12_288, 12_288),
            (999, 1000, 1000),
        ] {
            assert_eq!(roundest(managed, spanned), installed, "{managed}..={spanned}");
        }
        assert_eq!(roundest(0, u64::MAX), 1 << 63);
    }

    #[test]
    fn without_a_table_the_kernel_counts() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("proc")).unwrap();
        fs::write(root.path().join("proc/meminfo"), "MemTotal:        2027796 kB\nMemFree: 1 kB\n").unwrap();
        assert_eq!(modules(&[], root.path())[0].capacity, "1980MiB");
        let blocks = root.path().join("sys/devices/system/memory");
        for (n, state) in ["online", "online", "offline"].iter().enumerate() {
            fs::create_dir_all(blocks.join(format!("memory{n}"))).unwrap();
            fs::write(blocks.join(format!("memory{n}/state")), state).unwrap();
        }
        fs::write(blocks.join("block_size_bytes"), "40000000\n").unwrap();
        assert_eq!(modules(&[], root.path())[0].capacity, "2GiB");
        assert!(modules(&[], Path::new("/nonesuch")).is_empty());
    }
}
