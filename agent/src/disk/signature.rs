//! What lies on a disk, by the marks that file systems, volume managers and partition tables leave at its ends.

use super::{AlignedBuffer, BlockDevice, DiskError, read_exact};

/// How much of each end is looked at, and wiped: every mark of the table below lies inside.
pub(super) const END: u64 = 1 << 20;

#[derive(Clone, Copy, Debug)]
enum At {
    /// Bytes from the start.
    Start(usize),
    /// In the block of this size, aligned to that size, that lies this many such blocks before the end; then bytes
    /// into it.
    End { block: u64, back: u64, into: u64 },
}

/// Name, place, mark.
const MARKS: &[(&str, At, &[u8])] = &[
    ("MBR", At::Start(510), &[0x55, 0xaa]),
    ("GPT", At::Start(512), b"EFI PART"),
    ("GPT", At::Start(4096), b"EFI PART"),
    ("GPT backup", At::End { block: 512, back: 1, into: 0 }, b"EFI PART"),
    ("GPT backup", At::End { block: 4096, back: 1, into: 0 }, b"EFI PART"),
    ("ext", At::Start(1024 + 0x38), &[0x53, 0xef]),
    ("xfs", At::Start(0), b"XFSB"),
    ("btrfs", At::Start(0x1_0040), b"_BHRfS_M"),
    ("vfat", At::Start(54), b"FAT1"),
    ("vfat", At::Start(82), b"FAT32"),
    ("LVM2", At::Start(0), b"LABELONE"),
    ("LVM2", At::Start(512), b"LABELONE"),
    ("LVM2", At::Start(1024), b"LABELONE"),
    ("LVM2", At::Start(1536), b"LABELONE"),
    ("LUKS", At::Start(0), b"LUKS\xba\xbe"),
    ("md 0.90", At::End { block: 65536, back: 1, into: 0 }, &[0xfc, 0x4e, 0x2b, 0xa9]),
    ("md 1.0", At::End { block: 4096, back: 2, into: 0 }, &[0xfc, 0x4e, 0x2b, 0xa9]),
    ("md 1.1", At::Start(0), &[0xfc, 0x4e, 0x2b, 0xa9]),
    ("md 1.2", At::Start(4096), &[0xfc, 0x4e, 0x2b, 0xa9]),
    ("swap", At::Start(4086), b"SWAPSPACE2"),
    ("ISO 9660", At::Start(32769), b"CD001"),
    ("bcache", At::Start(4096 + 24), &[0xc6, 0x85, 0x73, 0xf6]),
];

/// ZFS keeps four labels of 256 KiB, two at each end; the first uberblock of each starts in its middle, and is
/// written in the byte order of the machine that made it.
const ZFS_LABEL: u64 = 256 << 10;
const ZFS_UBERBLOCKS: u64 = 128 << 10;
const ZFS_MAGIC: u64 = 0x00ba_b10c;

/// Names of what is found at the ends of the disk, each once.
///
/// # Errors
/// When an end cannot be read.
pub fn signatures(device: &dyn BlockDevice) -> Result<Vec<&'static str>, DiskError> {
    Ok(found(&Ends::read(device)?))
}

/// Names of what is found at these ends, each once.
pub(super) fn found(ends: &Ends) -> Vec<&'static str> {
    let mut found: Vec<&'static str> = Vec::new();
    for (name, at, mark) in MARKS {
        let hit = match *at {
            At::Start(offset) => ends.in_first(offset as u64, mark.len()),
            At::End { block, back, into } => {
                ends.aligned_end(block, back).and_then(|o| ends.at(o + into, mark.len()))
            }
        };
        if hit == Some(*mark) && !found.contains(name) {
            found.push(name);
        }
    }
    let labels = [Some(0), Some(ZFS_LABEL), ends.aligned_end(ZFS_LABEL, 2), ends.aligned_end(ZFS_LABEL, 1)];
    let is_uberblock = |bytes: &[u8]| {
        let word: Option<[u8; 8]> = bytes.try_into().ok();
        word.is_some_and(|w| u64::from_le_bytes(w) == ZFS_MAGIC || u64::from_be_bytes(w) == ZFS_MAGIC)
    };
    // Uberblock slots are at least 1 KiB; which one is in use changes with every transaction.
    let zfs = labels.into_iter().flatten().any(|label| {
        (0..(ZFS_LABEL - ZFS_UBERBLOCKS) / 1024)
            .filter_map(|slot| ends.at(label + ZFS_UBERBLOCKS + slot * 1024, 8))
            .any(is_uberblock)
    });
    if zfs {
        found.push("ZFS");
    }
    found
}

/// Both ends of a disk.
pub(super) struct Ends {
    size: u64,
    first: AlignedBuffer,
    last: AlignedBuffer,
}

impl Ends {
    pub(super) fn read(device: &dyn BlockDevice) -> Result<Self, DiskError> {
        let [first, last] = end_ranges(device.size(), END).map(|(offset, len)| {
            let mut buffer = AlignedBuffer::zeroed(len);
            read_exact(device, &mut buffer, offset).map(|()| buffer)
        });
        Ok(Self { size: device.size(), first: first?, last: last? })
    }

    fn in_first(&self, offset: u64, len: usize) -> Option<&[u8]> {
        let offset = usize::try_from(offset).ok()?;
        self.first.get(offset..offset + len)
    }

    /// Bytes at a position, when it lies in one of the ends.
    pub(super) fn at(&self, offset: u64, len: usize) -> Option<&[u8]> {
        self.in_first(offset, len).or_else(|| {
            let start = self.size - self.last.len() as u64;
            let offset = usize::try_from(offset.checked_sub(start)?).ok()?;
            self.last.get(offset..offset + len)
        })
    }

    /// Where the block of this size starts that lies so many such blocks before the end.
    pub(super) fn aligned_end(&self, block: u64, back: u64) -> Option<u64> {
        (self.size / block).checked_sub(back).map(|n| n * block)
    }
}

/// Position and length of the first and the last `reach` bytes; the same range twice on a tiny disk.
pub(super) fn end_ranges(size: u64, reach: u64) -> [(u64, usize); 2] {
    let len = size.min(reach);
    let bytes = usize::try_from(len).unwrap_or(usize::MAX);
    [(0, bytes), (size - len, bytes)]
}
