//! Whole transfers to and from a [`BlockDevice`], whatever it takes at a time.

use std::io;
use std::ops::{Deref, DerefMut};

use super::{ALIGNMENT, BlockDevice, DiskError};

/// Bytes that start at a multiple of [`ALIGNMENT`], as direct I/O demands.
pub struct AlignedBuffer {
    store: Vec<u8>,
    start: usize,
    len: usize,
}

impl AlignedBuffer {
    /// `len` zeros.
    pub fn zeroed(len: usize) -> Self {
        let store = vec![0; len + ALIGNMENT];
        // The vector is never grown, so its bytes stay where they are when the buffer moves.
        let start = store.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT);
        Self { store, start, len }
    }
}

impl Deref for AlignedBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.store[self.start..self.start + self.len]
    }
}

impl DerefMut for AlignedBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.store[self.start..self.start + self.len]
    }
}

impl std::fmt::Debug for AlignedBuffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "AlignedBuffer({} bytes)", self.len)
    }
}

/// Writes all of `data`, through short writes and interruptions.
///
/// # Errors
/// [`DiskError::Io`] with the position of the first byte that was not taken.
pub fn write_all(device: &dyn BlockDevice, data: &[u8], offset: u64) -> Result<(), DiskError> {
    transfer(device, "writing", data.len(), offset, |done, at| device.write_at(&data[done..], at))
}

/// Fills all of `buffer`, through short reads and interruptions.
///
/// # Errors
/// [`DiskError::Io`] with the position of the first byte that was not given.
pub fn read_exact(device: &dyn BlockDevice, buffer: &mut [u8], offset: u64) -> Result<(), DiskError> {
    transfer(device, "reading", buffer.len(), offset, |done, at| device.read_at(&mut buffer[done..], at))
}

fn transfer(
    device: &dyn BlockDevice,
    action: &'static str,
    len: usize,
    offset: u64,
    mut once: impl FnMut(usize, u64) -> io::Result<usize>,
) -> Result<(), DiskError> {
    let mut done = 0;
    while done < len {
        let at = offset + done as u64;
        let error = match once(done, at) {
            Ok(0) => io::Error::from(io::ErrorKind::UnexpectedEof),
            Ok(n) => {
                done += n;
                continue;
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => e,
        };
        return Err(DiskError::Io { disk: device.name().to_owned(), action, offset: at, source: error });
    }
    Ok(())
}

/// [`BlockDevice::forget_cache`] with the disk's name in its error.
pub(crate) fn forget_cache(device: &dyn BlockDevice) -> Result<(), DiskError> {
    device.forget_cache().map_err(|source| DiskError::Io {
        disk: device.name().to_owned(),
        action: "flushing",
        offset: 0,
        source,
    })
}
