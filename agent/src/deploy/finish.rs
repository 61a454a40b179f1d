//! From a disk whose ends are empty to one that boots: read back; all but the marks of a table; and, once the seed is
//! in place, those.

use std::sync::mpsc::sync_channel;
use std::thread;

use twox_hash::XxHash3_128;

use super::place::Content;
use super::write::{BLOCK, Block};
use super::{DeployError, Progress, Step};
use crate::disk::io::forget_cache;
use crate::disk::table::Table;
use crate::disk::{AlignedBuffer, BlockDevice, DiskError, read_exact, write_all};

/// Reads the image back from the medium and compares its checksum; the withheld blocks are taken from memory.
pub(super) fn read_back(
    device: &dyn BlockDevice,
    content: &Content,
    expected: u128,
    progress: &Progress,
) -> Result<(), DeployError> {
    progress.begin(Step::Verifying, Some(content.length));
    let mut hash = XxHash3_128::new();
    let mut take = |block: &Block| {
        hash.write(&block.buffer[..block.len]);
        progress.add(block.len as u64);
    };
    take(&content.first);
    let end = content.tail.first().map_or(content.length, |block| block.offset);
    thread::scope(|scope| {
        // Reading goes on while the block before is hashed.
        let (filled, blocks) = sync_channel(4);
        scope.spawn(move || {
            let sector = device.logical_sector() as usize;
            let mut offset = content.first.len as u64;
            while offset < end {
                let len = usize::try_from(end - offset).unwrap_or(usize::MAX).min(BLOCK);
                let mut buffer = AlignedBuffer::zeroed(len.next_multiple_of(sector));
                let read = read_exact(device, &mut buffer, offset).map(|()| Block { buffer, offset, len });
                let failed = read.is_err();
                if filled.send(read).is_err() || failed {
                    return;
                }
                offset += len as u64;
            }
        });
        for block in blocks {
            take(&block?);
        }
        Ok::<_, DiskError>(())
    })?;
    content.tail.iter().for_each(&mut take);
    if hash.finish_128() == expected {
        Ok(())
    } else {
        Err(DeployError::ReadBack { disk: device.name().to_owned(), what: "the image" })
    }
}

/// What is still to be written once the seed is in place, by which firmware and kernel find the partitions.
#[derive(Debug)]
pub(super) struct Marks {
    /// The first sectors, whole.
    start: AlignedBuffer,
    /// The backup of the table, and its place in bytes.
    backup: Option<(AlignedBuffer, u64)>,
}

/// Writes what was withheld, apart from the marks of the partition table: firmware still finds nothing to boot. The
/// table is completed for the size of this disk.
pub(super) fn lay(device: &dyn BlockDevice, content: &mut Content) -> Result<Marks, DeployError> {
    let sector = device.logical_sector() as usize;
    let mut backup = None;
    if let Table::Gpt(gpt) = &content.table {
        let first = &mut content.first;
        let made = gpt
            .complete(&mut first.buffer[..first.len], device.size())
            .map_err(|source| DeployError::Table { disk: device.name().to_owned(), source })?;
        if let Some(stale) = made.stale
            && !blank(&mut content.tail, stale.start, sector)
        {
            write_all(device, &AlignedBuffer::zeroed(sector), stale.start)?;
        }
        // An image as large as the disk brings a backup header of its own.
        blank(&mut content.tail, (device.size() / sector as u64 - 1) * sector as u64, sector);
        let mut bytes = AlignedBuffer::zeroed(made.bytes.len());
        bytes.copy_from_slice(&made.bytes);
        backup = Some((bytes, made.offset));
    }
    let first = &mut content.first;
    let whole = first.len.next_multiple_of(sector);
    let mut start = AlignedBuffer::zeroed((content.table.marks() * sector).min(whole));
    let length = start.len();
    start.copy_from_slice(&first.buffer[..length]);
    first.buffer[..length].fill(0);
    for block in &content.tail {
        write_all(device, &block.buffer[..block.len.next_multiple_of(sector)], block.offset)?;
    }
    write_all(device, &first.buffer[..whole], 0)?;
    check_written(device, "its end", content.tail.iter().map(|b| (&b.buffer[..b.len], b.offset)))?;
    check_written(device, "its start", [(&first.buffer[..whole], 0)])?;
    Ok(Marks { start, backup })
}

/// Zeroes the sector at this place in the block that will be written there; `false` when none will.
fn blank(withheld: &mut [Block], place: u64, sector: usize) -> bool {
    let found = withheld.iter_mut().find_map(|block| {
        let at = usize::try_from(place.checked_sub(block.offset)?).ok()?;
        block.buffer[..block.len].get_mut(at..).filter(|rest| !rest.is_empty())
    });
    found.is_some_and(|rest| {
        let len = rest.len().min(sector);
        rest[..len].fill(0);
        true
    })
}

/// Writes the marks, the backup of the table first: from here on the disk boots. Each is on the medium, and read back,
/// before the next is begun.
pub(super) fn commit(device: &dyn BlockDevice, marks: &Marks) -> Result<(), DeployError> {
    if let Some((bytes, offset)) = &marks.backup {
        write_all(device, bytes, *offset)?;
        check_written(device, "the backup partition table", [(&bytes[..], *offset)])?;
    }
    write_all(device, &marks.start, 0)?;
    check_written(device, "its first sectors", [(&marks.start[..], 0)])
}

fn check_written<'a>(
    device: &dyn BlockDevice,
    what: &'static str,
    parts: impl IntoIterator<Item = (&'a [u8], u64)>,
) -> Result<(), DeployError> {
    forget_cache(device)?;
    for (bytes, offset) in parts {
        let mut buffer =
            AlignedBuffer::zeroed(bytes.len().next_multiple_of(device.logical_sector() as usize));
        read_exact(device, &mut buffer, offset)?;
        if buffer[..bytes.len()] != *bytes {
            return Err(DeployError::ReadBack { disk: device.name().to_owned(), what });
        }
    }
    Ok(())
}
