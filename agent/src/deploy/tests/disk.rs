//! A file that stands for a disk, with the faults disks have.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use super::image;
use crate::disk::{ALIGNMENT, Access, BlockDevice, DiskError, Partition, Target, signatures};

/// What is wrong with a disk.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Faults {
    /// Every transfer takes one sector only, and every other call is interrupted.
    pub(super) piecemeal: bool,
    /// Writing this byte fails.
    pub(super) bad_write: Option<u64>,
    /// This byte always reads as something else.
    pub(super) bad_read: Option<u64>,
    /// Nothing can be read at all.
    pub(super) unreadable: bool,
    /// This byte cannot be read until it has been written, which has the disk put another sector in its place.
    pub(super) pending: Option<u64>,
    /// No write ever ends.
    pub(super) hangs: bool,
    /// What it does when asked for zeros of its own.
    pub(super) zeros: Zeros,
    /// This many re-reads of the partition table fail.
    pub(super) busy: u64,
}

/// How a disk makes zeros of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Zeros {
    #[default]
    Makes,
    Refuses,
    /// It says that it did.
    Forgets,
    /// It says that it did, and did the first time.
    ForgetsLater,
    /// It says that it did, and leaves what is not a multiple of 64 KiB at the end.
    Rounds,
}

pub(super) struct FileTarget {
    file: File,
    size: u64,
    sector: u32,
    faults: Mutex<Faults>,
    calls: AtomicU64,
    rereads: AtomicU64,
    /// How often it was asked for zeros of its own.
    asked: Arc<AtomicU64>,
    /// Bytes it was sent.
    sent: Arc<AtomicU64>,
    /// Numbers of the partitions the kernel was told of.
    told: Arc<Mutex<Vec<u64>>>,
    /// What was done to it, when that is kept.
    log: Option<Arc<Mutex<Vec<Op>>>>,
}

/// What a disk was told to do.
#[derive(Clone, Debug)]
pub(super) enum Op {
    Write(u64, Vec<u8>),
    /// Everything before is on the medium.
    Flush,
}

/// What an earlier system left: a byte everywhere, and a boot sector.
const OLD: u8 = 0x11;

fn old(size: u64) -> Vec<u8> {
    let mut old = vec![OLD; usize::try_from(size).unwrap()];
    old[510..512].copy_from_slice(&[0x55, 0xaa]);
    old
}

impl FileTarget {
    pub(super) fn new(size: u64, sector: u32) -> Arc<Self> {
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(&old(size), 0).unwrap();
        Arc::new(Self {
            file,
            size,
            sector,
            faults: Mutex::default(),
            calls: AtomicU64::new(0),
            rereads: AtomicU64::new(0),
            asked: Arc::default(),
            sent: Arc::default(),
            told: Arc::default(),
            log: None,
        })
    }

    /// One that keeps what was done to it.
    pub(super) fn logging(size: u64) -> Arc<Self> {
        let mut target = Self::new(size, 512);
        Arc::get_mut(&mut target).unwrap().log = Some(Arc::default());
        target
    }

    /// What was done to it so far.
    pub(super) fn log(&self) -> Vec<Op> {
        self.log.as_ref().unwrap().lock().unwrap().clone()
    }

    fn note(&self, op: impl FnOnce() -> Op) {
        if let Some(log) = &self.log {
            log.lock().unwrap().push(op());
        }
    }

    /// Bytes sent to the disk so far.
    pub(super) fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    pub(super) fn with_faults(size: u64, faults: Faults) -> Arc<Self> {
        let target = Self::new(size, 512);
        *target.faults.lock().unwrap() = faults;
        target
    }

    /// What is on the medium.
    pub(super) fn content(&self) -> Vec<u8> {
        let mut bytes = vec![0; usize::try_from(self.size).unwrap()];
        self.file.read_exact_at(&mut bytes, 0).unwrap();
        bytes
    }

    pub(super) fn is_untouched(&self) -> bool {
        self.content() == old(self.size)
    }

    /// No firmware finds anything at either end.
    pub(super) fn is_unbootable(self: &Arc<Self>) -> bool {
        *self.faults.lock().unwrap() = Faults::default();
        signatures(&FileDisk(Arc::clone(self))).unwrap().is_empty()
    }
}

/// Open handle on the target.
struct FileDisk(Arc<FileTarget>);

impl FileDisk {
    /// Checks what direct I/O demands, and what the kernel may do: how much to transfer now.
    fn admit(&self, buffer: *const u8, len: usize, offset: u64) -> io::Result<usize> {
        let sector = self.0.sector as usize;
        let piecemeal = self.0.faults.lock().unwrap().piecemeal;
        // A continued short transfer starts inside a buffer, at a sector.
        assert_eq!(buffer.align_offset(if piecemeal { sector } else { ALIGNMENT }), 0, "unaligned buffer");
        assert_eq!((offset % u64::from(self.0.sector), len % sector), (0, 0), "unaligned transfer");
        assert!(offset + len as u64 <= self.0.size, "transfer beyond the disk");
        if !piecemeal {
            return Ok(len);
        }
        if self.0.calls.fetch_add(1, Ordering::Relaxed).is_multiple_of(2) {
            return Err(io::Error::from(io::ErrorKind::Interrupted));
        }
        Ok(len.min(sector * 64))
    }
}

fn contains(offset: u64, len: usize, byte: Option<u64>) -> Option<usize> {
    let at = byte?.checked_sub(offset)?;
    usize::try_from(at).ok().filter(|at| *at < len)
}

impl BlockDevice for FileDisk {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn size(&self) -> u64 {
        self.0.size
    }

    fn logical_sector(&self) -> u32 {
        self.0.sector
    }

    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<usize> {
        let len = self.admit(data.as_ptr(), data.len(), offset)?;
        let Faults { bad_write: bad, hangs, .. } = *self.0.faults.lock().unwrap();
        if hangs {
            loop {
                std::thread::park();
            }
        }
        // Zeros can be written there, so that the wipe afterwards is not what fails.
        if contains(offset, len, bad).is_some() && data[..len].iter().any(|b| *b != 0) {
            return Err(io::Error::from_raw_os_error(nix::libc::EIO));
        }
        let pending = &mut self.0.faults.lock().unwrap().pending;
        *pending = pending.filter(|at| contains(offset, len, Some(*at)).is_none());
        self.0.sent.fetch_add(len as u64, Ordering::Relaxed);
        self.0.note(|| Op::Write(offset, data[..len].to_vec()));
        self.0.file.write_at(&data[..len], offset)
    }

    fn write_zeroes(&self, offset: u64, len: u64) -> io::Result<bool> {
        let sector = u64::from(self.0.sector);
        assert_eq!((offset % sector, len % sector), (0, 0), "unaligned zeros");
        assert!(offset + len <= self.0.size, "zeros beyond the disk");
        let zeros = self.0.faults.lock().unwrap().zeros;
        let made = match zeros {
            Zeros::Makes => len,
            Zeros::ForgetsLater if self.0.asked.fetch_add(1, Ordering::Relaxed) == 0 => len,
            Zeros::Rounds => len - len % (64 << 10),
            Zeros::Refuses | Zeros::Forgets | Zeros::ForgetsLater => 0,
        };
        if made > 0 {
            let made = vec![0; usize::try_from(made).unwrap()];
            self.0.note(|| Op::Write(offset, made.clone()));
            self.0.file.write_all_at(&made, offset)?;
        }
        Ok(zeros != Zeros::Refuses)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let len = self.admit(buffer.as_ptr(), buffer.len(), offset)?;
        let Faults { unreadable, pending, .. } = *self.0.faults.lock().unwrap();
        if unreadable || contains(offset, len, pending).is_some() {
            return Err(io::Error::from_raw_os_error(nix::libc::EIO));
        }
        self.0.file.read_exact_at(&mut buffer[..len], offset)?;
        let bad = self.0.faults.lock().unwrap().bad_read;
        // A stuck byte is zero after the wipe, or the wipe would be what is tested.
        if let Some(at) = contains(offset, len, bad)
            && buffer[at] != 0
        {
            buffer[at] ^= 1;
        }
        Ok(len)
    }

    fn flush(&self) -> io::Result<()> {
        self.0.note(|| Op::Flush);
        Ok(())
    }

    fn forget_cache(&self) -> io::Result<()> {
        self.flush()
    }

    fn reread_partitions(&self) -> io::Result<()> {
        if self.0.rereads.fetch_add(1, Ordering::Relaxed) < self.0.faults.lock().unwrap().busy {
            return Err(io::Error::from_raw_os_error(nix::libc::EBUSY));
        }
        self.0.told.lock().unwrap().clear();
        Ok(())
    }

    fn add_partition(&self, number: u64, start: u64, len: u64) -> io::Result<()> {
        let sector = u64::from(self.0.sector);
        assert_eq!((start % sector, len % sector, len == 0), (0, 0, false), "unaligned partition");
        assert!(start + len <= self.0.size, "partition beyond the disk");
        self.0.told.lock().unwrap().push(number);
        Ok(())
    }
}

/// The trait wants a handle that outlives the borrow, so the target is given as an `Arc`.
impl Target for FileTarget {
    fn name(&self) -> &'static str {
        "/dev/vda"
    }

    fn open(&self, _: Access) -> Result<Arc<dyn BlockDevice>, DiskError> {
        let copy = Self {
            file: self.file.try_clone().unwrap(),
            size: self.size,
            sector: self.sector,
            faults: Mutex::new(*self.faults.lock().unwrap()),
            calls: AtomicU64::new(0),
            rereads: AtomicU64::new(0),
            asked: Arc::clone(&self.asked),
            sent: Arc::clone(&self.sent),
            told: Arc::clone(&self.told),
            log: self.log.clone(),
        };
        Ok(Arc::new(FileDisk(Arc::new(copy))))
    }

    /// As the kernel would see them.
    fn partitions(&self) -> Result<Vec<Partition>, DiskError> {
        let told = self.told.lock().unwrap().clone();
        let numbers = if told.is_empty() { image::shown_numbers(self.content(), self.sector) } else { told };
        let partition = |number| Partition {
            name: format!("vda{number}"),
            number,
            dev: (254, number),
            size: 0,
            label: None,
        };
        Ok(numbers.into_iter().map(partition).collect())
    }
}
