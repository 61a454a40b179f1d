//! What the running kernel sees of memory and processors, held against what the firmware's tables claim.
//!
//! A module that the firmware lists but has switched off, or mirrors, counts in SMBIOS all the same; the
//! operating system will only ever have what the kernel sees.

use farrier_shared::contract::capacity;
use farrier_shared::contract::report::MemoryModule;
use sysinfo::{CpuRefreshKind, MemoryRefreshKind, RefreshKind, System};

/// Less than this share of the installed memory is worth a note: firmware and kernel keep some for themselves,
/// on small machines up to a tenth.
const EXPECTED_PERCENT: u64 = 75;

/// What the running kernel sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Running {
    /// Memory the kernel manages, in bytes.
    pub(super) memory_bytes: u64,
    /// Hardware threads online.
    pub(super) logical_cpus: usize,
}

/// Asks the kernel of this machine; other roots have none to ask. [`None`] when it does not answer.
pub(super) fn running() -> Option<Running> {
    let wanted = RefreshKind::nothing()
        .with_memory(MemoryRefreshKind::nothing().with_ram())
        .with_cpu(CpuRefreshKind::nothing());
    let system = System::new_with_specifics(wanted).ok()?;
    Some(Running { memory_bytes: system.total_memory(), logical_cpus: system.cpus().len() })
}

/// A note when the kernel sees much less memory than the tables list; nothing when either is silent.
pub(super) fn missing_memory(modules: &[MemoryModule], seen_bytes: u64) -> Option<String> {
    let installed: i64 = modules.iter().filter_map(|m| capacity::gigabytes(&m.capacity).ok()).sum();
    let installed = u64::try_from(installed).ok().filter(|gb| *gb > 0)?;
    let seen = seen_bytes / 1_000_000_000;
    let lacks = seen_bytes > 0 && seen.saturating_mul(100) < installed.saturating_mul(EXPECTED_PERCENT);
    lacks.then(|| {
        format!("the kernel sees {seen} GB of {installed} GB of memory installed: is a module disabled or mirrored?")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GB: u64 = 1_000_000_000;

    fn modules(capacities: &[&str]) -> Vec<MemoryModule> {
        let module = |c: &&str| MemoryModule { capacity: (*c).to_owned(), ..MemoryModule::default() };
        capacities.iter().map(module).collect()
    }

    #[test]
    fn memory_that_the_kernel_does_not_see_is_noted() {
        for (capacities, seen, noted) in [
            (&["32GiB", "32GiB"][..], 66 * GB, false),
            (&["32GiB", "32GiB"][..], 52 * GB, false),
            (&["32GiB", "32GiB"][..], 33 * GB, true),
            (&["1GiB"][..], GB, false),
            (&["512MiB"][..], 470_000_000, false),
            (&["unknown"][..], GB, false),
            (&[][..], GB, false),
            (&["32GiB"][..], 0, false),
        ] {
            let note = missing_memory(&modules(capacities), seen);
            assert_eq!(note.is_some(), noted, "{capacities:?} of which {seen} bytes are seen: {note:?}");
        }
    }

    #[test]
    fn this_machine_has_memory_and_a_processor() {
        let running = running().unwrap();
        assert!(running.memory_bytes > 0);
        assert!(running.logical_cpus > 0);
    }
}
