//! A partition mounted where nobody else looks, through a device node of our own.

use std::fs;
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use nix::mount::{MntFlags, MsFlags, mount, umount, umount2};
use nix::sys::stat::{Mode, SFlag, makedev, mknod};

use crate::disk::Partition;

/// A block device node made from the number the kernel gave the partition: no name in `/dev` is trusted. Removed on
/// drop.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) path: PathBuf,
}

impl Node {
    pub(super) fn make(work: &Path, partition: &Partition) -> io::Result<Self> {
        let path = work.join(format!("farrier-seed.{}", partition.name));
        // Left over from a run that was killed.
        let _ = fs::remove_file(&path);
        let (major, minor) = partition.dev;
        mknod(&path, SFlag::S_IFBLK, Mode::S_IRUSR | Mode::S_IWUSR, makedev(major, minor))?;
        Ok(Self { path })
    }

    /// The first bytes of the partition, as many as the buffer holds.
    pub(super) fn read_head(&self, buffer: &mut [u8]) -> io::Result<()> {
        use std::io::Read as _;
        let mut file =
            fs::OpenOptions::new().read(true).custom_flags(nix::libc::O_CLOEXEC).open(&self.path)?;
        file.read_exact(buffer)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // It lies on a tmpfs that ends with this system.
        let _ = fs::remove_file(&self.path);
    }
}

/// A mounted file system; unmounted on drop if [`unmount`](Self::unmount) was not called.
#[derive(Debug)]
pub(super) struct Mounted {
    pub(super) path: PathBuf,
    mounted: bool,
}

impl Mounted {
    /// Mounts with no devices, no set-user-id, no programs.
    pub(super) fn new(node: &Node, work: &Path) -> io::Result<Self> {
        let path = work.join("farrier-seed.mnt");
        match fs::create_dir(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => made?,
        }
        let flags = MsFlags::MS_NODEV | MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC;
        // The ext4 driver takes ext2 and ext3 as well.
        mount(Some(&node.path), &path, Some("ext4"), flags, None::<&str>)?;
        Ok(Self { path, mounted: true })
    }

    /// Unmounts, lazily when something keeps it busy: what was written has been flushed by then.
    pub(super) fn unmount(mut self) -> io::Result<()> {
        self.detach()
    }

    fn detach(&mut self) -> io::Result<()> {
        if !std::mem::replace(&mut self.mounted, false) {
            return Ok(());
        }
        umount(&self.path).or_else(|_| umount2(&self.path, MntFlags::MNT_DETACH))?;
        // An empty directory left behind harms nothing.
        let _ = fs::remove_dir(&self.path);
        Ok(())
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // Only after another error, which is the one to tell.
        let _ = self.detach();
    }
}
