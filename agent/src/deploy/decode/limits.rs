//! What a decoder may take of the machine.

use std::thread::available_parallelism;

/// Threads and memory for decoders that can use several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Limits {
    /// Threads at most.
    pub(in super::super) threads: u32,
    /// Bytes that decoding in parallel may take; with less than it needs, one thread decodes.
    pub(in super::super) memory: u64,
}

impl Limits {
    /// One thread, for a look at the first bytes.
    pub(in super::super) const SINGLE: Self = Self { threads: 1, memory: 0 };

    /// A quarter of the machine's memory, up to 1 GiB: enough for eight blocks of `xz -6` where there is room, and
    /// for one or two on a machine of 512 MiB.
    pub(in super::super) fn of_machine() -> Self {
        let total = nix::sys::sysinfo::sysinfo().map_or(0, |info| info.ram_total());
        let threads = available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(u32::MAX));
        Self { threads: threads.min(8), memory: (total / 4).min(1 << 30) }
    }
}
