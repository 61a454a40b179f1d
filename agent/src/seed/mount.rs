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

use super::SeedError;
use super::filesystem::{FileSystem, Kind};
use super::place::Place;
use crate::disk::Partition;
use crate::init::drivers;
use crate::sys::block;

/// A block device node made from the number the kernel gave the partition: no name in `/dev` is trusted. Removed on
/// drop.
#[derive(Debug)]
pub(super) struct Node {
    path: PathBuf,
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

    fn open(&self) -> io::Result<fs::File> {
        fs::OpenOptions::new().read(true).custom_flags(nix::libc::O_CLOEXEC).open(&self.path)
    }

    /// The first bytes of the partition: so many, or all there are.
    pub(super) fn head(&self, len: usize) -> io::Result<Vec<u8>> {
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
pub(super) enum Access {
    /// To look.
    Read,
    /// To plant.
    Write,
}

/// A mounted file system; unmounted on drop if [`unmount`](Self::unmount) was not called.
#[derive(Debug)]
pub(super) struct Mounted {
    pub(super) path: PathBuf,
    partition: String,
    mounted: bool,
}

impl Mounted {
    /// Mounts with no devices, no set-user-id, no programs.
    pub(super) fn new(place: &Place, work: &Path, access: Access) -> Result<Self, SeedError> {
        let partition = &place.partition;
        let node = Node::make(work, partition)
            .map_err(SeedError::io("making a device node for", &partition.name))?;
        let path = work.join("farrier-seed.mnt");
        match fs::create_dir(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => made.map_err(SeedError::io("making a mount point for", &partition.name))?,
        }
        let mut flags = MsFlags::MS_NODEV | MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC;
        if access == Access::Read {
            flags |= MsFlags::MS_RDONLY;
        }
        let (driver, options) = driver(place.filesystem.as_ref());
        if driver == "btrfs" {
            // Rarely needed, and slow to load: only now.
            drivers::load_one(driver);
        }
        mount(Some(&node.path), &path, Some(driver), flags, options).map_err(|errno| {
            let _ = fs::remove_dir(&path);
            refused(place, &node, errno.into())
        })?;
        Ok(Self { path, partition: partition.name.clone(), mounted: true })
    }

    /// Unmounts, lazily when something keeps it busy: what was written has been flushed by then.
    pub(super) fn unmount(mut self) -> Result<(), SeedError> {
        self.detach().map_err(SeedError::io("unmounting", &self.partition))
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

/// The kernel's driver, and its options.
fn driver(filesystem: Option<&FileSystem>) -> (&'static str, Option<&'static str>) {
    match filesystem.map(|f| f.kind) {
        // FAT knows no modes: what is seen of them is the mount's. The names are ours, and plain ASCII.
        Some(Kind::Fat) => ("vfat", Some("umask=0077,codepage=437,iocharset=ascii")),
        Some(Kind::Btrfs) => ("btrfs", None),
        // It takes ext2 and ext3 as well.
        Some(Kind::Ext) | None => ("ext4", None),
    }
}

/// What a refused mount comes from, where that can be told.
fn refused(place: &Place, node: &Node, source: io::Error) -> SeedError {
    let partition = place.partition.name.clone();
    let disk = node.open().and_then(block::logical_sector);
    match (place.filesystem.as_ref().and_then(|f| f.sector), disk) {
        (Some(sector), Ok(disk)) if sector < disk => SeedError::SectorSize { partition, sector, disk },
        _ => SeedError::io("mounting", &partition)(source),
    }
}
