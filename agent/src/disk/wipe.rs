//! Clears both ends of a disk, where partition tables and the marks of file systems and volumes lie.

use super::io::forget_cache;
use super::signature::{end_ranges, signatures};
use super::{AlignedBuffer, BlockDevice, DiskError, read_exact, write_all};

/// Zeroes the first and the last MiB, flushes, and reads both back. A disk so wiped has neither MBR nor primary
/// nor backup GPT: no firmware boots it. Doing it twice does no harm.
///
/// # Errors
/// When the disk cannot be written, or does not keep the zeros.
pub fn wipe(device: &dyn BlockDevice) -> Result<(), DiskError> {
    let ranges = end_ranges(device.size());
    for (offset, len) in ranges {
        write_all(device, &AlignedBuffer::zeroed(len), offset)?;
    }
    forget_cache(device)?;
    for (offset, len) in ranges {
        let mut buffer = AlignedBuffer::zeroed(len);
        read_exact(device, &mut buffer, offset)?;
        if let Some(at) = buffer.iter().position(|b| *b != 0) {
            return Err(DiskError::NotWiped { disk: device.name().to_owned(), offset: offset + at as u64 });
        }
    }
    Ok(())
}

/// Logs what is on the disk and about to be wiped, for the operator's sake.
///
/// # Errors
/// When the ends cannot be read at all.
pub fn log_found(device: &dyn BlockDevice) -> Result<(), DiskError> {
    let found = signatures(device)?;
    if !found.is_empty() {
        tracing::info!(disk = device.name(), found = found.join(", "), "wiping what an earlier system left");
    }
    Ok(())
}
