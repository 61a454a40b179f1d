//! What lies on a disk, by the marks that file systems, volume managers and partition tables leave at its ends; and the
//! identifiers beside them, by which an installed system finds them again.

use super::{AlignedBuffer, BlockDevice, DiskError, read_exact};

/// How much of each end is looked at, and wiped: every mark of the table below lies inside.
pub(super) const END: u64 = 1 << 20;

/// Where a mark is.
#[derive(Clone, Copy, Debug)]
enum At {
    /// Bytes from the start.
    Start(u64),
    /// At the block of this size, aligned to that size, that lies this many such blocks before the end.
    End { block: u64, back: u64 },
}

/// Where the identifier of what has the mark is.
#[derive(Clone, Copy, Debug)]
enum Id {
    /// It has none.
    No,
    /// Bytes from the start, and how many they are.
    At(u64, usize),
    /// Bytes from the mark, and how many they are.
    Behind(u64, usize),
    /// Four words behind the mark: one, then three further on.
    Words,
    /// In the header that the label names.
    Header,
}

/// An md superblock.
const MD: &[u8] = &[0xfc, 0x4e, 0x2b, 0xa9];
const LVM: &[u8] = b"LABELONE";

/// Name, place, mark, identifier. Of two rows of one name the first that is there counts.
const MARKS: &[(&str, At, &[u8], Id)] = &[
    ("MBR", At::Start(510), &[0x55, 0xaa], Id::No),
    ("GPT", At::Start(512), b"EFI PART", Id::No),
    ("GPT", At::Start(4096), b"EFI PART", Id::No),
    ("GPT backup", At::End { block: 512, back: 1 }, b"EFI PART", Id::No),
    ("GPT backup", At::End { block: 4096, back: 1 }, b"EFI PART", Id::No),
    ("ext", At::Start(1024 + 0x38), &[0x53, 0xef], Id::At(1024 + 0x68, 16)),
    ("xfs", At::Start(0), b"XFSB", Id::At(32, 16)),
    ("btrfs", At::Start(0x1_0040), b"_BHRfS_M", Id::At(0x1_0020, 16)),
    ("vfat", At::Start(82), b"FAT32", Id::At(67, 4)),
    ("vfat", At::Start(54), b"FAT1", Id::At(39, 4)),
    ("LVM2", At::Start(0), LVM, Id::Header),
    ("LVM2", At::Start(512), LVM, Id::Header),
    ("LVM2", At::Start(1024), LVM, Id::Header),
    ("LVM2", At::Start(1536), LVM, Id::Header),
    ("LUKS", At::Start(0), b"LUKS\xba\xbe", Id::At(168, 40)),
    ("md 0.90", At::End { block: 65536, back: 1 }, MD, Id::Words),
    ("md 1.0", At::End { block: 4096, back: 2 }, MD, Id::Behind(16, 16)),
    ("md 1.1", At::Start(0), MD, Id::Behind(16, 16)),
    ("md 1.2", At::Start(4096), MD, Id::Behind(16, 16)),
    ("swap", At::Start(4086), b"SWAPSPACE2", Id::At(1024 + 12, 16)),
    ("ISO 9660", At::Start(32769), b"CD001", Id::No),
    ("bcache", At::Start(4096 + 24), &[0xc6, 0x85, 0x73, 0xf6], Id::No),
];

/// ZFS keeps four labels of 256 KiB, two at each end; the first uberblock of each starts in its middle, and is
/// written in the byte order of the machine that made it.
const ZFS_LABEL: u64 = 256 << 10;
const ZFS_UBERBLOCKS: u64 = 128 << 10;
const ZFS_MAGIC: u64 = 0x00ba_b10c;

/// Something that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// What it is, such as `ext`.
    pub(super) kind: &'static str,
    /// Its identifier, as on the disk; [`None`] when it has none, or only zeros.
    pub(super) identifier: Option<Vec<u8>>,
}

/// Names of what is found at the ends of the disk, each once.
///
/// # Errors
/// When an end cannot be read.
pub fn signatures(device: &dyn BlockDevice) -> Result<Vec<&'static str>, DiskError> {
    Ok(found(&Ends::read(device)?).into_iter().map(|found| found.kind).collect())
}

/// What is found at these ends, each kind once.
pub(super) fn found(ends: &Ends) -> Vec<Found> {
    let mut found: Vec<Found> = Vec::new();
    for (kind, at, mark, id) in MARKS {
        let place = match *at {
            At::Start(offset) => ends.in_first(offset, mark.len()).map(|bytes| (offset, bytes)),
            At::End { block, back } => {
                ends.aligned_end(block, back).and_then(|offset| Some((offset, ends.at(offset, mark.len())?)))
            }
        };
        if let Some((offset, bytes)) = place
            && bytes == *mark
            && !found.iter().any(|found| found.kind == *kind)
        {
            found.push(Found { kind, identifier: identifier(ends, offset, *id) });
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
        found.push(Found { kind: "ZFS", identifier: None });
    }
    found
}

/// The identifier of what has its mark at this place.
fn identifier(ends: &Ends, mark: u64, id: Id) -> Option<Vec<u8>> {
    let bytes = match id {
        Id::No => return None,
        Id::At(at, len) => ends.at(at, len)?.to_vec(),
        Id::Behind(far, len) => ends.at(mark + far, len)?.to_vec(),
        Id::Words => [ends.at(mark + 20, 4)?, ends.at(mark + 52, 12)?].concat(),
        Id::Header => {
            let header = u32::from_le_bytes(ends.at(mark + 20, 4)?.try_into().ok()?);
            // A header outside of its label's sector is no header.
            let header = Some(header).filter(|header| *header <= 480)?;
            ends.at(mark + u64::from(header), 32)?.to_vec()
        }
    };
    bytes.iter().any(|b| *b != 0).then_some(bytes)
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
