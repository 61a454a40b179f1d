//! Clears the places where partition tables and the marks of file systems and volumes lie.

use std::ops::Range;

use super::gpt::Gpt;
use super::io::forget_cache;
use super::mbr::Mbr;
use super::signature::{END, end_ranges, signatures};
use super::{AlignedBuffer, BlockDevice, DiskError, read_exact, write_all};

/// How much of each end of a disk is cleared before it is written. More than holds any mark, since a partition that is
/// grown later ends up to a MiB and a table before the end of the disk, and looks for its own marks there.
const CLEARED: u64 = 4 << 20;
/// The boot record, and the headers of both tables whatever the sectors.
const OUTERMOST: u64 = 8 << 10;
/// Bytes zeroed at once.
const PIECE: u64 = 1 << 20;
/// Old partitions whose ends are cleared: as many as a usual table has room for.
const PARTITIONS: usize = 128;

/// Zeroes the first and the last MiB, flushes, and reads both back. A disk so wiped has neither MBR nor primary
/// nor backup GPT: no firmware boots it. Doing it twice does no harm.
///
/// Where the disk cannot be written, the rest is wiped all the same, the outermost sectors by themselves: a sector
/// that failed must not keep the boot record beside it.
///
/// # Errors
/// When the disk cannot be written, or does not keep the zeros.
pub fn wipe(device: &dyn BlockDevice) -> Result<(), DiskError> {
    let ends = |reach| end_ranges(device.size(), reach).map(|(offset, len)| offset..offset + len as u64);
    let ranges = [ends(OUTERMOST), ends(END)].concat();
    let each: Vec<_> = ranges.iter().map(|range| zero(device, std::slice::from_ref(range))).collect();
    each.into_iter().collect()
}

/// [`wipe`], and both ends of every partition that is there, so that no member of an array, volume group or pool
/// comes back to life where the new system's partitions do not happen to overwrite its marks.
///
/// # Errors
/// As [`wipe`].
pub fn clear(device: &dyn BlockDevice) -> Result<(), DiskError> {
    // A table that cannot be read names no partitions; whether the disk is any good shows when the zeros are read back.
    let mut ranges = old_partition_ends(device).unwrap_or_default();
    ranges.extend(end_ranges(device.size(), CLEARED).map(|(offset, len)| offset..offset + len as u64));
    zero(device, &ranges)
}

/// Both ends of the partitions of the table on the disk, whole sectors inside the disk.
fn old_partition_ends(device: &dyn BlockDevice) -> Result<Vec<Range<u64>>, DiskError> {
    let (size, sector) = (device.size(), u64::from(device.logical_sector()));
    let [(_, len), _] = end_ranges(size, END);
    let mut head = AlignedBuffer::zeroed(len);
    read_exact(device, &mut head, 0)?;
    // A table made for other sectors, or damaged, is none: its partitions were not usable either.
    let extents = match Gpt::read(&head, device.logical_sector()) {
        Ok(Some(gpt)) => gpt.extents(size),
        _ => Mbr::read(&head, device.logical_sector()).extents(),
    };
    let mut ranges = Vec::new();
    for extent in extents.into_iter().take(PARTITIONS) {
        let bytes = |sectors: u64| sectors.saturating_mul(sector).min(size / sector * sector);
        let (start, end) = (bytes(extent.first), bytes(extent.last.saturating_add(1)));
        let len = END.min(end.saturating_sub(start));
        if len > 0 {
            ranges.extend([start..start + len, end - len..end]);
        }
    }
    Ok(ranges)
}

/// Zeroes these ranges, flushes, and reads them back.
fn zero(device: &dyn BlockDevice, ranges: &[Range<u64>]) -> Result<(), DiskError> {
    let all = || ranges.iter().flat_map(pieces);
    let longest = all().map(|(_, len)| len).max().unwrap_or(0);
    let zeros = AlignedBuffer::zeroed(longest);
    for (offset, len) in all() {
        write_all(device, &zeros[..len], offset)?;
    }
    forget_cache(device)?;
    let mut buffer = AlignedBuffer::zeroed(longest);
    for (offset, len) in all() {
        let part = &mut buffer[..len];
        read_exact(device, part, offset)?;
        // Compared as a whole first, which takes a fraction of the time.
        if *part != zeros[..len]
            && let Some(at) = part.iter().position(|b| *b != 0)
        {
            return Err(DiskError::NotWiped { disk: device.name().to_owned(), offset: offset + at as u64 });
        }
    }
    Ok(())
}

/// A range in pieces of at most [`PIECE`]: place and length.
fn pieces(range: &Range<u64>) -> impl Iterator<Item = (u64, usize)> {
    let Range { start, end } = *range;
    let places = (0..).map(move |n| start + n * PIECE).take_while(move |at| *at < end);
    places.map(move |at| (at, usize::try_from(PIECE.min(end - at)).unwrap_or(usize::MAX)))
}

/// Logs what is on the disk and about to be wiped, for the operator's sake. A sector that cannot be read says nothing of
/// the disk yet: writing it has the disk put another in its place.
pub fn log_found(device: &dyn BlockDevice) {
    match signatures(device) {
        Ok(found) if found.is_empty() => {}
        Ok(found) => {
            tracing::info!(
                disk = device.name(),
                found = found.join(", "),
                "wiping what an earlier system left"
            );
        }
        Err(error) => {
            tracing::warn!(%error, "what an earlier system left is not known; wiping it all the same");
        }
    }
}
