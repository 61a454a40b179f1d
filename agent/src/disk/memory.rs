//! A disk in memory that does what it is told, for tests and fuzzers.

use std::io;
use std::sync::{Mutex, PoisonError};

use super::BlockDevice;

/// Its bytes and the size of its sectors.
pub(super) struct Memory {
    bytes: Mutex<Vec<u8>>,
    size: u64,
    sector: u32,
}

impl Memory {
    pub(super) fn new(bytes: Vec<u8>, sector: u32) -> Self {
        Self { size: bytes.len() as u64, bytes: Mutex::new(bytes), sector }
    }

    /// What is on it now.
    #[cfg(test)]
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    fn with(&self, offset: u64, len: usize, act: impl FnOnce(&mut [u8])) -> io::Result<usize> {
        let mut bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        let start = usize::try_from(offset).map_err(io::Error::other)?;
        let part = start.checked_add(len).and_then(|end| bytes.get_mut(start..end));
        act(part.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?);
        Ok(len)
    }
}

impl BlockDevice for Memory {
    fn name(&self) -> &str {
        "/dev/mem"
    }

    fn size(&self) -> u64 {
        self.size
    }

    fn logical_sector(&self) -> u32 {
        self.sector
    }

    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<usize> {
        self.with(offset, data.len(), |part| part.copy_from_slice(data))
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.with(offset, buffer.len(), |part| buffer.copy_from_slice(part))
    }

    fn flush(&self) -> io::Result<()> {
        Ok(())
    }

    fn forget_cache(&self) -> io::Result<()> {
        Ok(())
    }

    fn reread_partitions(&self) -> io::Result<()> {
        Ok(())
    }

    fn add_partition(&self, _: u64, _: u64, _: u64) -> io::Result<()> {
        Ok(())
    }
}
