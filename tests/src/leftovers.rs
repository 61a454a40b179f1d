//! What an earlier system left on a disk: marks all over it, by which bytes that were written, and bytes that were
//! not, can be told.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};

use crate::partitions::MIB;

/// Bytes of a mark: a sector of any disk.
const MARK: u64 = 4096;

/// What a disk held before the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Leftovers {
    /// Nothing: it is new.
    #[default]
    None,
    /// A mark at both ends of every MiB, each of its own. Firmware and agent take them for no table and no file system.
    Marks,
}

impl Leftovers {
    /// Makes the file of a disk that holds this.
    ///
    /// # Errors
    /// When it cannot be written, or is not made of whole MiB.
    pub fn lay(self, disk: &Path, size: u64) -> Result<()> {
        ensure!(size.is_multiple_of(MIB), "a disk of {size} bytes is not made of whole MiB");
        let file = File::create(disk).with_context(|| format!("make the disk {}", disk.display()))?;
        file.set_len(size)?;
        for start in self.marks(0..size) {
            file.write_all_at(&mark(start), start).with_context(|| format!("mark {}", disk.display()))?;
        }
        Ok(())
    }

    /// Fills in what the disk held at this place.
    pub fn fill(self, at: u64, bytes: &mut [u8]) {
        bytes.fill(0);
        let end = at + bytes.len() as u64;
        for start in self.marks(at..end) {
            let (from, to) = (start.max(at), (start + MARK).min(end));
            if from < to {
                let place = |base: u64| to_usize(from - base)..to_usize(to - base);
                bytes[place(at)].copy_from_slice(&mark(start)[place(start)]);
            }
        }
    }

    /// Where the marks of every MiB begin that has a byte in this range.
    fn marks(self, range: std::ops::Range<u64>) -> impl Iterator<Item = u64> {
        let all = match self {
            Self::None => 0..0,
            Self::Marks => range.start / MIB..range.end.div_ceil(MIB),
        };
        all.flat_map(|mib| [mib * MIB, (mib + 1) * MIB - MARK])
    }
}

/// Text, so that no boot signature is in it, that says where it lies.
fn mark(start: u64) -> Vec<u8> {
    format!("before{start:010x}").into_bytes().repeat(to_usize(MARK) / 16)
}

/// For lengths of bytes in memory.
fn to_usize(len: u64) -> usize {
    usize::try_from(len).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_holds_what_is_said_of_it_from_whatever_byte_it_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let disk = dir.path().join("disk.raw");
        Leftovers::Marks.lay(&disk, 3 * MIB).unwrap();
        let whole = std::fs::read(&disk).unwrap();
        assert!(whole.starts_with(b"before0000000000") && whole.ends_with(b"before00002ff000"));
        for (at, len) in [(0, 3 * MIB), (5, 4096), (MIB - 4100, 8200), (2 * MIB - 1, 1), (5000, 5000)] {
            let mut expected = vec![0xff; usize::try_from(len).unwrap()];
            Leftovers::Marks.fill(at, &mut expected);
            let at = usize::try_from(at).unwrap();
            assert!(expected == whole[at..at + expected.len()], "{len} bytes at {at}");
        }
    }

    #[test]
    fn a_new_disk_is_empty() {
        let dir = tempfile::tempdir().unwrap();
        let disk = dir.path().join("disk.raw");
        Leftovers::None.lay(&disk, MIB).unwrap();
        assert!(std::fs::read(&disk).unwrap().iter().all(|byte| *byte == 0));
        assert!(Leftovers::None.lay(&disk, MIB + 512).is_err());
    }
}
