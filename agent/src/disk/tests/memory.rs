//! A disk in memory.

use std::io;
use std::sync::Mutex;

use crate::disk::BlockDevice;

/// Its bytes.
pub(super) struct Memory(pub(super) Mutex<Vec<u8>>);

impl BlockDevice for Memory {
    fn name(&self) -> &str {
        "/dev/mem"
    }

    fn size(&self) -> u64 {
        self.0.lock().unwrap().len() as u64
    }

    fn logical_sector(&self) -> u32 {
        512
    }

    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<usize> {
        let at = usize::try_from(offset).unwrap();
        self.0.lock().unwrap()[at..at + data.len()].copy_from_slice(data);
        Ok(data.len())
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let at = usize::try_from(offset).unwrap();
        buffer.copy_from_slice(&self.0.lock().unwrap()[at..at + buffer.len()]);
        Ok(buffer.len())
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
}
