//! From a disk whose ends are empty to one that boots: read back, end, start, in this order.

use std::sync::mpsc::sync_channel;
use std::thread;

use twox_hash::XxHash3_128;

use super::place::Content;
use super::write::{BLOCK, Block};
use super::{DeployError, Progress, Step};
use crate::disk::io::forget_cache;
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

/// Writes what was withheld: the end of the image, the backup partition table, and last of all the first MiB.
/// Each is on the medium, and read back, before the next is begun.
pub(super) fn commit(device: &dyn BlockDevice, content: &mut Content) -> Result<(), DeployError> {
    let sector = device.logical_sector() as usize;
    for block in &content.tail {
        write_all(device, &block.buffer[..block.len.next_multiple_of(sector)], block.offset)?;
    }
    check_written(device, "its end", content.tail.iter().map(|b| (&b.buffer[..b.len], b.offset)))?;
    if let Some(gpt) = &content.gpt {
        let first = &mut content.first;
        let backup = gpt
            .complete(&mut first.buffer[..first.len], device.size())
            .map_err(|source| DeployError::Table { disk: device.name().to_owned(), source })?;
        if let Some(stale) = backup.stale {
            write_all(device, &AlignedBuffer::zeroed(sector), stale.start)?;
        }
        let mut bytes = AlignedBuffer::zeroed(backup.bytes.len());
        bytes.copy_from_slice(&backup.bytes);
        write_all(device, &bytes, backup.offset)?;
        check_written(device, "the backup partition table", [(&bytes[..], backup.offset)])?;
    }
    let first = &content.first;
    write_all(device, &first.buffer[..first.len.next_multiple_of(sector)], 0)?;
    check_written(device, "its start", [(&first.buffer[..first.len], 0)])
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
