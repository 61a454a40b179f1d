//! What is written to: a file, or a loop device.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, FileTypeExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use farrier_agent::disk::{Access, BlockDevice, DiskError, Partition, Target};
use farrier_agent::sys::block;
use nix::fcntl::{FallocateFlags, fallocate};
use nix::libc::O_DIRECT;

/// A loop device on a file; detached when dropped.
pub(crate) struct Loop {
    path: PathBuf,
}

impl Loop {
    pub(crate) fn attach(file: &Path, size: u64) -> Result<Self> {
        File::create(file)?.set_len(size)?;
        let out = Command::new("losetup").args(["--find", "--show"]).arg(file).output().context("losetup")?;
        ensure!(out.status.success(), "losetup: {}", String::from_utf8_lossy(&out.stderr));
        Ok(Self { path: PathBuf::from(String::from_utf8(out.stdout)?.trim()) })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        if let Err(error) = Command::new("losetup").arg("--detach").arg(&self.path).status() {
            eprintln!("{} stays: {error}", self.path.display());
        }
    }
}

/// Whether direct I/O works there; a tmpfs learnt it in Linux 6.6.
pub(crate) fn takes_direct(path: &Path, size: u64) -> Result<bool> {
    fill(path, size)?;
    Ok(open(path, O_DIRECT).is_ok())
}

/// Has the target hold other bytes than zeros everywhere, so that nobody gains by what an earlier run left.
pub(crate) fn fill(path: &Path, size: u64) -> Result<()> {
    let file = OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
    if !file.metadata()?.file_type().is_block_device() {
        file.set_len(size)?;
    }
    let old = vec![0xa5; 1 << 20];
    for at in (0..size).step_by(old.len()) {
        file.write_all_at(&old, at)?;
    }
    file.sync_all()?;
    Ok(())
}

fn open(path: &Path, flags: i32) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).custom_flags(flags).open(path)
}

/// A file or device by path.
pub(crate) struct PathTarget {
    path: PathBuf,
    name: String,
}

impl PathTarget {
    pub(crate) fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), name: path.display().to_string() }
    }
}

impl Target for PathTarget {
    fn name(&self) -> &str {
        &self.name
    }

    fn open(&self, _: Access) -> Result<Arc<dyn BlockDevice>, DiskError> {
        let failed = |source| DiskError::Open { disk: self.name.clone(), source };
        let file = open(&self.path, O_DIRECT).or_else(|_| open(&self.path, 0)).map_err(failed)?;
        let about = file.metadata().map_err(failed)?;
        let is_disk = about.file_type().is_block_device();
        let size = if is_disk { block::size(&file).map_err(failed)? } else { about.len() };
        Ok(Arc::new(PathDevice { file, name: self.name.clone(), size, is_disk }))
    }

    fn partitions(&self) -> Result<Vec<Partition>, DiskError> {
        Ok(Vec::new())
    }
}

struct PathDevice {
    file: File,
    name: String,
    size: u64,
    is_disk: bool,
}

impl BlockDevice for PathDevice {
    fn name(&self) -> &str {
        &self.name
    }

    fn size(&self) -> u64 {
        self.size
    }

    fn logical_sector(&self) -> u32 {
        512
    }

    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<usize> {
        self.file.write_at(data, offset)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(buffer, offset)
    }

    /// As the agent does it on a disk; a hole in a file, which reads as zeros by definition.
    fn write_zeroes(&self, offset: u64, len: u64) -> io::Result<bool> {
        if self.is_disk {
            return block::zero_out(&self.file, offset, len).map(|()| true);
        }
        let hole = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
        let signed = |value: u64| i64::try_from(value).map_err(io::Error::other);
        fallocate(&self.file, hole, signed(offset)?, signed(len)?)?;
        Ok(true)
    }

    fn flush(&self) -> io::Result<()> {
        self.file.sync_all()
    }

    fn forget_cache(&self) -> io::Result<()> {
        self.file.sync_all()?;
        if self.is_disk { block::flush_cache(&self.file) } else { Ok(()) }
    }

    fn reread_partitions(&self) -> io::Result<()> {
        Ok(())
    }

    fn add_partition(&self, _: u64, _: u64, _: u64) -> io::Result<()> {
        Ok(())
    }
}
