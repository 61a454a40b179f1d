//! A partition mounted where nobody else looks, through a device node of our own.

use std::fs;
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use nix::errno::Errno;
use nix::mount::{MntFlags, MsFlags, mount, umount, umount2};
use nix::sys::stat::{Mode, SFlag, makedev, mknod};

use crate::disk::Partition;
use crate::init::drivers;
use crate::sys::block;

/// A block device node made from the number the kernel gave the partition: no name in `/dev` is trusted. Removed on
/// drop.
#[derive(Debug)]
pub(crate) struct Node {
    path: PathBuf,
}

impl Node {
    pub(crate) fn make(work: &Path, partition: &Partition) -> io::Result<Self> {
        let path = work.join(format!("farrier-node.{}", partition.name));
        // Left over from a run that was killed.
        let _ = fs::remove_file(&path);
        let (major, minor) = partition.dev;
        mknod(&path, SFlag::S_IFBLK, Mode::S_IRUSR | Mode::S_IWUSR, makedev(major, minor))?;
        Ok(Self { path })
    }

    fn open(&self) -> io::Result<fs::File> {
        fs::OpenOptions::new().read(true).custom_flags(nix::libc::O_CLOEXEC).open(&self.path)
    }

    /// The first bytes of the partition: so many, or all there are.
    pub(crate) fn head(&self, len: usize) -> io::Result<Vec<u8>> {
        use std::io::Read as _;
        let mut head = Vec::with_capacity(len);
        self.open()?.take(len as u64).read_to_end(&mut head)?;
        Ok(head)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // It lies on a tmpfs that ends with this system.
        let _ = fs::remove_file(&self.path);
    }
}

/// How often and after what time something busy is unmounted anew: one detached lazily is left unclean.
const BUSY_TRIES: u32 = 20;
const BUSY_PAUSE: Duration = Duration::from_millis(50);

/// How a partition is mounted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// To look.
    Read,
    /// To plant.
    Write,
}

/// A file system's driver in the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Driver {
    /// ext4, which takes ext2 and ext3 as well.
    Ext4,
    /// FAT of any width.
    Fat,
    /// btrfs.
    Btrfs,
}

impl Driver {
    /// Its name and options.
    fn mount(self) -> (&'static str, Option<&'static str>) {
        match self {
            Self::Ext4 => ("ext4", None),
            // FAT knows no modes: what is seen of them is the mount's. The names are ours and those that firmware looks
            // for, all plain ASCII.
            Self::Fat => ("vfat", Some("umask=0077,codepage=437,iocharset=ascii")),
            Self::Btrfs => ("btrfs", None),
        }
    }
}

/// A partition that was not mounted, or not unmounted.
#[derive(Debug, thiserror::Error)]
#[error("{action} it: {source}")]
pub(crate) struct MountError {
    /// What was done, such as `mounting`.
    pub(crate) action: &'static str,
    /// Bytes to a sector of the disk, when mounting was refused: the file system may be made for smaller ones.
    pub(crate) disk_sector: Option<u32>,
    /// Why.
    pub(crate) source: io::Error,
}

impl MountError {
    /// A closure for `map_err`.
    fn at<E: Into<io::Error>>(action: &'static str) -> impl FnOnce(E) -> Self {
        move |source| Self { action, disk_sector: None, source: source.into() }
    }
}

/// A mounted file system; unmounted on drop if [`unmount`](Self::unmount) was not called.
#[derive(Debug)]
pub(crate) struct Mounted {
    pub(crate) path: PathBuf,
    mounted: bool,
}

impl Mounted {
    /// Mounts with no devices, no set-user-id, no programs; `work` is a writable directory on a tmpfs.
    pub(crate) fn new(
        partition: &Partition,
        driver: Driver,
        work: &Path,
        access: Access,
    ) -> Result<Self, MountError> {
        let node = Node::make(work, partition).map_err(MountError::at("making a device node for"))?;
        let path = work.join("farrier-mount");
        match fs::create_dir(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => made.map_err(MountError::at("making a mount point for"))?,
        }
        let mut flags = MsFlags::MS_NODEV | MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC;
        if access == Access::Read {
            flags |= MsFlags::MS_RDONLY;
        }
        let (name, options) = driver.mount();
        if driver == Driver::Btrfs {
            // Rarely needed, and slow to load: only now.
            drivers::load_one(name);
        }
        mount(Some(&node.path), &path, Some(name), flags, options).map_err(|errno| {
            let _ = fs::remove_dir(&path);
            let disk_sector = node.open().and_then(block::logical_sector).ok();
            MountError { disk_sector, ..MountError::at("mounting")(errno) }
        })?;
        Ok(Self { path, mounted: true })
    }

    /// Unmounts, lazily when something keeps it busy: what was written has been flushed by then.
    pub(crate) fn unmount(mut self) -> Result<(), MountError> {
        self.detach().map_err(MountError::at("unmounting"))
    }

    fn detach(&mut self) -> io::Result<()> {
        if !std::mem::replace(&mut self.mounted, false) {
            return Ok(());
        }
        let mut tries = 0..BUSY_TRIES;
        loop {
            // Another thread's child may hold our descriptors for the moment between its fork and its exec.
            match umount(&self.path) {
                Err(Errno::EBUSY) if tries.next().is_some() => thread::sleep(BUSY_PAUSE),
                Err(Errno::EBUSY) => break umount2(&self.path, MntFlags::MNT_DETACH)?,
                ended => break ended?,
            }
        }
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
