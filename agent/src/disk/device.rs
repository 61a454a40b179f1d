//! An open disk behind a narrow trait, so that a file can stand for it in tests.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::sync::Arc;

use nix::libc::{EINVAL, ENOTTY, EOPNOTSUPP, O_CLOEXEC, O_DIRECT, O_EXCL, O_NOFOLLOW};
use nix::sys::stat::{major, minor};

use super::holders;
use super::partition::{self, Partition};
use super::{Disk, DiskError, Identity, Roots};
use crate::sys::block;

/// Buffers, offsets and lengths given to a device are multiples of its logical sector; buffers start at a
/// multiple of this, which suffices for direct I/O on every driver.
pub const ALIGNMENT: usize = 4096;

/// An open disk. Positions are bytes; reads and writes may be short or interrupted, as the kernel's are.
pub trait BlockDevice: Send + Sync {
    /// Path, for messages.
    fn name(&self) -> &str;
    /// Size in bytes.
    fn size(&self) -> u64;
    /// Logical sector size in bytes.
    fn logical_sector(&self) -> u32;
    /// Writes some of `data`.
    ///
    /// # Errors
    /// As the kernel reports.
    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<usize>;
    /// Fills some of `buffer`.
    ///
    /// # Errors
    /// As the kernel reports.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Has the device make `len` bytes at `offset` read as zeros without being sent them. `false`: it cannot, and
    /// nothing has changed.
    ///
    /// Only what promises zeros counts; a discard does not.
    ///
    /// # Errors
    /// As the kernel reports.
    fn write_zeroes(&self, _offset: u64, _len: u64) -> io::Result<bool> {
        Ok(false)
    }
    /// Returns once everything written is on the medium.
    ///
    /// # Errors
    /// As the kernel reports; an error means that anything written since the last flush may be lost.
    fn flush(&self) -> io::Result<()>;
    /// Flushes, and has later reads come from the medium.
    ///
    /// # Errors
    /// As the kernel reports.
    fn forget_cache(&self) -> io::Result<()>;
    /// Has the kernel read the partition table again.
    ///
    /// # Errors
    /// As the kernel reports; `EBUSY` passes with time.
    fn reread_partitions(&self) -> io::Result<()>;
    /// Has the kernel see a partition that no table tells of, of `len` bytes at `start`, until it reads a table again.
    ///
    /// # Errors
    /// As the kernel reports; `EBUSY` when it overlaps one that is seen already.
    fn add_partition(&self, number: u64, start: u64, len: u64) -> io::Result<()>;
}

/// How a disk is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// For us alone: fails while anything holds it, and keeps mounts away.
    Exclusive,
    /// Whoever holds it: only to make a failed disk unbootable.
    Forced,
    /// To read only, whoever holds it.
    Shared,
}

/// A disk that can be opened any number of times and is the same disk each time.
pub trait Target: Send + Sync {
    /// Path, for messages.
    fn name(&self) -> &str;
    /// Opens it, having made sure that it is the disk that was chosen.
    ///
    /// # Errors
    /// When it is held, gone, or another disk has its name now.
    fn open(&self, access: Access) -> Result<Arc<dyn BlockDevice>, DiskError>;
    /// The partitions the kernel sees on it now, in order of number.
    ///
    /// # Errors
    /// When they cannot be listed.
    fn partitions(&self) -> Result<Vec<Partition>, DiskError>;
}

/// A disk of the machine.
#[derive(Clone, Debug)]
pub struct KernelTarget {
    disk: Disk,
    roots: Roots,
    name: String,
}

impl KernelTarget {
    /// This disk, as it was discovered.
    pub fn new(disk: Disk, roots: Roots) -> Self {
        let name = disk.path.display().to_string();
        Self { disk, roots, name }
    }

    fn open_file(&self, access: Access) -> Result<File, DiskError> {
        let exclusive = if access == Access::Exclusive { O_EXCL } else { 0 };
        let open = |extra: i32| {
            OpenOptions::new()
                .read(true)
                .write(access != Access::Shared)
                .custom_flags(O_CLOEXEC | O_NOFOLLOW | exclusive | extra)
                .open(&self.disk.path)
        };
        // Some drivers refuse direct I/O; the page cache then does, with an explicit flush and forget.
        let opened = open(O_DIRECT).or_else(|e| match e.raw_os_error() {
            Some(nix::libc::EINVAL) => open(0),
            _ => Err(e),
        });
        opened.map_err(|source| match source.raw_os_error() {
            Some(nix::libc::EBUSY) => DiskError::Busy { disk: self.name.clone() },
            _ => DiskError::Open { disk: self.name.clone(), source },
        })
    }

    /// Compares the open descriptor, not the path, with what was chosen.
    fn check(&self, file: &File) -> Result<(), DiskError> {
        let open = |source| DiskError::Open { disk: self.name.clone(), source };
        let changed = |what, expected: String, got: String| {
            if expected == got {
                return Ok(());
            }
            Err(DiskError::Changed { disk: self.name.clone(), what, expected, got })
        };
        let metadata = file.metadata().map_err(open)?;
        if !metadata.file_type().is_block_device() {
            return Err(DiskError::NotBlockDevice { pin: self.name.clone() });
        }
        let number = (major(metadata.rdev()), minor(metadata.rdev()));
        changed("device number", format!("{:?}", self.disk.dev), format!("{number:?}"))?;
        let size = block::size(file).map_err(open)?;
        changed("size", self.disk.size.to_string(), size.to_string())?;
        let sector = block::logical_sector(file).map_err(open)?;
        changed("sector size", self.disk.logical_sector.to_string(), sector.to_string())?;
        // The number may have been handed on to another disk since; sysfs is asked whose it is now.
        let by_number = self.roots.sys.join(format!("dev/block/{}:{}", number.0, number.1));
        let holder = fs::canonicalize(&by_number).map_err(open)?;
        let name = holder.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        let now = Identity::read(&self.roots, &name);
        // Which disk of all that ever had the number: tells even those apart that have no names of their own.
        let count = |sequence: Option<u64>| sequence.map_or_else(|| "none".to_owned(), |n| n.to_string());
        changed("sequence number", count(self.disk.identity.sequence), count(now.sequence))?;
        changed("serial number", self.disk.identity.serial.clone(), now.serial)?;
        changed("world-wide name", self.disk.identity.wwid.clone(), now.wwid)
    }
}

impl Target for KernelTarget {
    fn name(&self) -> &str {
        &self.name
    }

    fn open(&self, access: Access) -> Result<Arc<dyn BlockDevice>, DiskError> {
        if access == Access::Exclusive {
            holders::release(&self.roots, &self.disk.name)?;
        }
        let file = self.open_file(access)?;
        self.check(&file)?;
        Ok(Arc::new(KernelDevice {
            file,
            name: self.name.clone(),
            size: self.disk.size,
            logical_sector: self.disk.logical_sector,
        }))
    }

    fn partitions(&self) -> Result<Vec<Partition>, DiskError> {
        partition::list(&self.roots, &self.disk.name)
    }
}

struct KernelDevice {
    file: File,
    name: String,
    size: u64,
    logical_sector: u32,
}

impl BlockDevice for KernelDevice {
    fn name(&self) -> &str {
        &self.name
    }

    fn size(&self) -> u64 {
        self.size
    }

    fn logical_sector(&self) -> u32 {
        self.logical_sector
    }

    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<usize> {
        self.file.write_at(data, offset)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(buffer, offset)
    }

    fn write_zeroes(&self, offset: u64, len: u64) -> io::Result<bool> {
        match block::zero_out(&self.file, offset, len) {
            Ok(()) => Ok(true),
            Err(e) if matches!(e.raw_os_error(), Some(EOPNOTSUPP | ENOTTY | EINVAL)) => Ok(false),
            Err(e) => Err(e),
        }
    }

    fn flush(&self) -> io::Result<()> {
        self.file.sync_all()
    }

    fn forget_cache(&self) -> io::Result<()> {
        self.file.sync_all()?;
        block::flush_cache(&self.file)
    }

    fn reread_partitions(&self) -> io::Result<()> {
        block::reread_partitions(&self.file)
    }

    fn add_partition(&self, number: u64, start: u64, len: u64) -> io::Result<()> {
        block::add_partition(&self.file, number, start, len)
    }
}
