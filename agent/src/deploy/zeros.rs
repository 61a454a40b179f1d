//! Blocks of zeros, which need not be sent to a device that can make its own.

use std::ops::Range;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::disk::{AlignedBuffer, BlockDevice, DiskError, read_exact, write_all};

/// Longest run handed to the device at once: what a device without a command for it writes in a second or so, so that
/// progress shows.
const LONGEST: u64 = 64 << 20;
/// How much of the first run is read back to see whether the device keeps its word, and how much is written at once
/// where it does not.
const STEP: u64 = 1 << 20;
/// The largest sector there is: how much of the first run is marked beforehand, and how much is read back at the end
/// of every run and at the start of later ones.
const EDGE: u64 = 4096;

/// Whether all bytes are zero.
pub(super) fn is_zero(bytes: &[u8]) -> bool {
    // Most blocks that are not zero show it in their first page; within a page no branch keeps the compiler from
    // using wide registers.
    bytes.chunks(4096).all(|page| page.iter().fold(0, |all, byte| all | byte) == 0)
}

/// Adjoining blocks of zeros that have been seen and not yet been dealt with.
#[derive(Debug, Default)]
pub(super) struct Run {
    range: Range<u64>,
}

impl Run {
    /// Adds a block, in order; what is to be dealt with now.
    pub(super) fn extend(&mut self, offset: u64, len: u64) -> Option<Range<u64>> {
        let end = offset + len;
        if offset == self.range.end && !self.range.is_empty() && end - self.range.start <= LONGEST {
            self.range.end = end;
            return None;
        }
        let before = self.end();
        self.range = offset..end;
        before
    }

    /// What is left to be dealt with.
    pub(super) fn end(&mut self) -> Option<Range<u64>> {
        let range = std::mem::take(&mut self.range);
        (!range.is_empty()).then_some(range)
    }
}

/// What is known of how a device makes zeros.
#[derive(Debug, Default)]
pub(super) struct Zeroing {
    state: AtomicU8,
}

const UNKNOWN: u8 = 0;
const KEEPS_ITS_WORD: u8 = 1;
const IS_SENT_ZEROS: u8 = 2;

impl Zeroing {
    /// Makes a range of whole sectors read as zeros.
    pub(super) fn zero(&self, device: &dyn BlockDevice, range: Range<u64>) -> Result<(), DiskError> {
        let state = self.state.load(Ordering::Relaxed);
        if state != IS_SENT_ZEROS {
            let failed = |source| DiskError::Io {
                disk: device.name().to_owned(),
                action: "zeroing",
                offset: range.start,
                source,
            };
            if state == UNKNOWN {
                mark(device, &range)?;
            }
            let done = device.write_zeroes(range.start, range.end - range.start).map_err(failed)?;
            let head = if state == UNKNOWN { STEP } else { EDGE };
            if done && reads_as_zeros(device, &range, head)? {
                self.state.store(KEEPS_ITS_WORD, Ordering::Relaxed);
                return Ok(());
            }
            tracing::info!(disk = device.name(), "zeros are sent to the disk; it makes none by itself");
            self.state.store(IS_SENT_ZEROS, Ordering::Relaxed);
        }
        let zeros = AlignedBuffer::zeroed(to_usize(STEP.min(range.end - range.start)));
        let mut at = range.start;
        while at < range.end {
            let len = STEP.min(range.end - at);
            write_all(device, &zeros[..to_usize(len)], at)?;
            at += len;
        }
        Ok(())
    }
}

/// Puts something other than zeros where the range starts: the place may hold zeros already, from the wipe or from the
/// factory, and a device that does nothing would seem to have made them.
fn mark(device: &dyn BlockDevice, range: &Range<u64>) -> Result<(), DiskError> {
    let mut bytes = AlignedBuffer::zeroed(to_usize(EDGE.min(range.end - range.start)));
    bytes.fill(0xa5);
    write_all(device, &bytes, range.start)
}

/// Whether this much of the start of the range reads as zeros, and its end. A device that gets it wrong does so from
/// the start, or where the range ends inside what it makes zeros of at once; the whole is for the reading back of the
/// image to show.
fn reads_as_zeros(device: &dyn BlockDevice, range: &Range<u64>, head: u64) -> Result<bool, DiskError> {
    let len = range.end - range.start;
    let zero = |at, len| -> Result<bool, DiskError> {
        let mut bytes = AlignedBuffer::zeroed(to_usize(len));
        read_exact(device, &mut bytes, at)?;
        Ok(is_zero(&bytes))
    };
    Ok(zero(range.start, head.min(len))? && zero(range.end - EDGE.min(len), EDGE.min(len))?)
}

/// For lengths of at most [`STEP`].
fn to_usize(len: u64) -> usize {
    usize::try_from(len).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_byte_anywhere_is_not_zero() {
        for len in [1, 511, 4096, 4097, 9000] {
            let mut bytes = vec![0; len];
            assert!(is_zero(&bytes), "{len}");
            for at in [0, len / 2, len - 1] {
                bytes[at] = 0x80;
                assert!(!is_zero(&bytes), "{at} of {len}");
                bytes[at] = 0;
            }
        }
    }

    #[test]
    fn adjoining_blocks_become_one_run_up_to_a_limit() {
        let mut run = Run::default();
        assert_eq!(run.extend(STEP, STEP), None);
        assert_eq!(run.extend(2 * STEP, STEP), None);
        assert_eq!(run.extend(9 * STEP, STEP), Some(STEP..3 * STEP), "a gap ends it");
        assert_eq!(run.end(), Some(9 * STEP..10 * STEP));
        assert_eq!(run.end(), None);
        let mut runs: Vec<_> = (0..200).filter_map(|n| run.extend(n * STEP, STEP)).collect();
        runs.extend(run.end());
        let starts: Vec<_> = runs.iter().map(|run| run.start / STEP).collect();
        assert_eq!((starts, runs.last()), (vec![0, 64, 128, 192], Some(&(192 * STEP..200 * STEP))));
    }
}
