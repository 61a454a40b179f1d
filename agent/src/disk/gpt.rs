//! GUID partition tables (UEFI specification 2.10, section 5.3): checked in the image's first bytes before
//! anything is destroyed, and completed for the disk's real size before they are written.

use std::ops::Range;

/// Sector sizes a table may be made for, in bytes.
const SECTOR_SIZES: [u32; 2] = [512, 4096];
const SIGNATURE: &[u8; 8] = b"EFI PART";
const MBR_MARK: [u8; 2] = [0x55, 0xaa];

/// A table that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GptError {
    /// The table is made for another sector size.
    #[error("the image is made for {image}-byte sectors, the disk has {disk}; use an image built for {disk}")]
    SectorSize {
        /// Of the image.
        image: u32,
        /// Of the disk.
        disk: u32,
    },
    /// The header or the entries do not add up.
    #[error("the image's partition table is unsound: {what}")]
    Damaged {
        /// Which part.
        what: &'static str,
    },
    /// There is nothing that could grow.
    #[error("farrier.grow=last needs an image with a GPT and a partition in it; this one has none")]
    NothingToGrow,
    /// The partition that should grow has another behind it.
    #[error("farrier.grow=last cannot grow partition {last}: partition {behind} lies behind it")]
    NotAtTheEnd {
        /// The partition of the highest number.
        last: u64,
        /// The one at the end of the disk.
        behind: u64,
    },
    /// A partition ends beyond the disk.
    #[error("the image's partitions need {needed} bytes, the disk has {disk}")]
    TooLarge {
        /// Bytes needed.
        needed: u64,
        /// Bytes there are.
        disk: u64,
    },
}

/// A checked primary table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gpt {
    sector: u64,
    header: Range<usize>,
    entries: Range<usize>,
    /// Where the image has its backup header, in sectors.
    alternate: u64,
    /// Last sector of the last partition.
    last_used: u64,
    /// Bytes of one entry.
    step: usize,
    /// Number of the partition that [`complete`](Self::complete) grows.
    grows: Option<u64>,
    /// Numbers of the partitions, counted from one.
    pub numbers: Vec<u64>,
    /// The partitions, in order of number.
    pub partitions: Vec<Entry>,
    /// Name of the disk, as the table has it: mixed-endian, never printed.
    pub disk_guid: [u8; 16],
}

/// One partition of a table. Identifiers are as on the disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Number, counted from one.
    pub number: u64,
    /// What it is for.
    pub kind: [u8; 16],
    /// Its own identifier.
    pub guid: [u8; 16],
    /// First sector.
    pub first: u64,
    /// Last sector.
    pub last: u64,
}

/// The part of a completed table that lies at the end of the disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backup {
    /// Where [`bytes`](Self::bytes) go.
    pub offset: u64,
    /// Entries and header, whole sectors up to the end of the disk.
    pub bytes: Vec<u8>,
    /// A sector that held the backup header in the image and must not any more.
    pub stale: Option<Range<u64>>,
}

/// Whether these first bytes of a disk hold a partition table at all: the least an image must have.
pub fn looks_partitioned(head: &[u8]) -> bool {
    head.get(510..512) == Some(&MBR_MARK) || sector_size(head).is_some()
}

/// The sector size a GPT in these bytes is made for; [`None`] without a GPT.
fn sector_size(head: &[u8]) -> Option<u32> {
    SECTOR_SIZES.into_iter().find(|size| {
        let at = *size as usize;
        head.get(at..at + 8) == Some(SIGNATURE)
    })
}

/// Numbers of the primary partitions of an MBR, counted from one.
pub fn mbr_numbers(head: &[u8]) -> Vec<u64> {
    let kind = |index: u64| usize::try_from(446 + index * 16 + 4).ok().and_then(|at| head.get(at));
    (0..4).filter(|index| kind(*index).is_some_and(|k| *k != 0)).map(|index| index + 1).collect()
}

/// First and last sector of the primary partitions of an MBR; an extended one counts as one.
pub fn mbr_extents(head: &[u8]) -> Vec<(u64, u64)> {
    if head.get(510..512) != Some(&MBR_MARK) {
        return Vec::new();
    }
    let entries = (0..4).map(|index| 446 + index * 16);
    let used = entries.filter(|at| !matches!(head.get(at + 4), None | Some(0 | 0xee)));
    used.filter_map(|at| {
        let (first, sectors) = (u64::from(u32_at(head, at + 8)), u64::from(u32_at(head, at + 12)));
        Some((first, (first + sectors).checked_sub(1)?))
    })
    .filter(|(first, last)| 0 < *first && first <= last)
    .collect()
}

impl Gpt {
    /// The table in the first bytes of an image, checked for a disk of this sector size; [`None`] without one.
    ///
    /// # Errors
    /// When it is made for another sector size, or damaged.
    pub fn read(head: &[u8], disk_sector: u32) -> Result<Option<Self>, GptError> {
        let Some(image) = sector_size(head) else { return Ok(None) };
        if image != disk_sector {
            return Err(GptError::SectorSize { image, disk: disk_sector });
        }
        Self::parse(head, image).map(Some)
    }

    /// Bytes of the disk the image in these first bytes was made for, if it has a sound GPT.
    pub fn declared_size(head: &[u8]) -> Option<u64> {
        let gpt = Self::parse(head, sector_size(head)?).ok()?;
        gpt.alternate.checked_add(1)?.checked_mul(gpt.sector)
    }

    fn parse(head: &[u8], sector: u32) -> Result<Self, GptError> {
        let damaged = |what| GptError::Damaged { what };
        let start = sector as usize;
        let size = usize::try_from(u32_at(head, start + 12)).unwrap_or(usize::MAX);
        if !(92..=start).contains(&size) || head.len() < start * 2 {
            return Err(damaged("header size"));
        }
        let header = start..start + size;
        let mut copy = head[header.clone()].to_vec();
        copy[16..20].fill(0);
        if crc32(&copy) != u32_at(head, start + 16) {
            return Err(damaged("header checksum"));
        }
        if u64_at(head, start + 24) != 1 {
            return Err(damaged("header position"));
        }
        let (count, entry) = (u64::from(u32_at(head, start + 80)), u64::from(u32_at(head, start + 84)));
        if entry < 128 || entry % 128 != 0 {
            return Err(damaged("entry size"));
        }
        let place = |lba: u64| {
            let from = lba.checked_mul(u64::from(sector))?;
            let to = from.checked_add(count.checked_mul(entry)?)?;
            let range = usize::try_from(from).ok()?..usize::try_from(to).ok()?;
            (range.start >= start * 2 && range.end <= head.len()).then_some(range)
        };
        let entries = place(u64_at(head, start + 72)).ok_or(damaged("entries not in the first MiB"))?;
        if crc32(&head[entries.clone()]) != u32_at(head, start + 88) {
            return Err(damaged("entries checksum"));
        }
        let step = usize::try_from(entry).map_err(|_| damaged("entry size"))?;
        let (mut numbers, mut partitions, mut last_used) = (Vec::new(), Vec::new(), 0);
        for (number, entry) in (1..).zip(head[entries.clone()].chunks_exact(step)) {
            if entry[..16].iter().all(|b| *b == 0) {
                continue;
            }
            let (first, last) = (u64_at(entry, 32), u64_at(entry, 40));
            if first > last {
                return Err(damaged("a partition ends before it starts"));
            }
            numbers.push(number);
            partitions.push(Entry { number, kind: guid_at(entry, 0), guid: guid_at(entry, 16), first, last });
            last_used = last_used.max(last);
        }
        Ok(Self {
            sector: u64::from(sector),
            header,
            entries,
            alternate: u64_at(head, start + 32),
            last_used,
            step,
            grows: None,
            numbers,
            partitions,
            disk_guid: guid_at(head, start + 56),
        })
    }

    /// First sector of the backup entries on a disk of this many bytes, when everything fits before it.
    fn backup_start(&self, disk_size: u64) -> Result<u64, GptError> {
        let entries = (self.entries.len() as u64).div_ceil(self.sector);
        let too_large = GptError::TooLarge {
            needed: self.last_used.saturating_add(2 + entries).saturating_mul(self.sector),
            disk: disk_size,
        };
        let start = (disk_size / self.sector).checked_sub(entries + 1);
        start.filter(|start| *start > self.last_used).ok_or(too_large)
    }

    /// Whether every partition and the backup table fit on a disk of this many bytes.
    ///
    /// # Errors
    /// [`GptError::TooLarge`].
    pub fn check_fits(&self, disk_size: u64) -> Result<(), GptError> {
        self.backup_start(disk_size).map(|_| ())
    }

    /// Whether an image of this many bytes holds every partition to its end.
    ///
    /// # Errors
    /// [`GptError::Damaged`].
    pub fn check_holds(&self, image: u64) -> Result<(), GptError> {
        let end = self.last_used.saturating_add(1).saturating_mul(self.sector);
        if self.numbers.is_empty() || end <= image {
            return Ok(());
        }
        Err(GptError::Damaged { what: "the image ends inside a partition" })
    }

    /// Has [`complete`](Self::complete) grow the last partition to the end of the disk, less what keeps its end at a
    /// whole MiB. Only the table changes: the file system inside is grown by the installed system.
    ///
    /// # Errors
    /// Without a table or partition; when the partition of the highest number is not the last on the disk.
    pub fn grow_last(table: Option<&mut Self>) -> Result<(), GptError> {
        let gpt = table.ok_or(GptError::NothingToGrow)?;
        let last = gpt.numbers.last().copied().ok_or(GptError::NothingToGrow)?;
        let at_end = gpt.partitions.iter().max_by_key(|partition| partition.last);
        let behind = at_end.map_or(last, |partition| partition.number);
        if behind != last {
            return Err(GptError::NotAtTheEnd { last, behind });
        }
        gpt.grows = Some(last);
        Ok(())
    }

    /// Rewrites the entry that grows, and the checksum of all entries in the primary header.
    fn grow(&self, head: &mut [u8], backup: u64) {
        let Some(index) = self.grows.and_then(|number| usize::try_from(number - 1).ok()) else { return };
        let mib = (1 << 20) / self.sector;
        let end = backup / mib * mib;
        if end <= self.last_used + 1 {
            return;
        }
        put_u64(&mut head[self.entries.clone()], index * self.step + 40, end - 1);
        let sum = crc32(&head[self.entries.clone()]);
        let at = self.header.start + 88;
        head[at..at + 4].copy_from_slice(&sum.to_le_bytes());
    }

    /// Completes the table for a disk of this many bytes: corrects the primary header and the protective MBR in
    /// `head`, the bytes the table was read from, and gives what belongs at the end of the disk.
    ///
    /// # Errors
    /// [`GptError::TooLarge`].
    pub fn complete(&self, head: &mut [u8], disk_size: u64) -> Result<Backup, GptError> {
        let backup = self.backup_start(disk_size)?;
        let last = disk_size / self.sector - 1;
        self.grow(head, backup);
        let primary = &mut head[self.header.clone()];
        put_u64(primary, 32, last);
        put_u64(primary, 48, backup - 1);
        seal(primary);
        let mut header = primary.to_vec();
        put_u64(&mut header, 24, last);
        put_u64(&mut header, 32, 1);
        put_u64(&mut header, 72, backup);
        seal(&mut header);
        let to_usize = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        let mut bytes = vec![0; to_usize((last + 1 - backup) * self.sector)];
        bytes[..self.entries.len()].copy_from_slice(&head[self.entries.clone()]);
        let at = to_usize((last - backup) * self.sector);
        bytes[at..at + header.len()].copy_from_slice(&header);
        widen_protective_mbr(head, last);
        // Only a place after the last partition can have held the image's backup header.
        let moved = self.alternate != last && (self.last_used + 1..last).contains(&self.alternate);
        let stale = moved.then(|| self.alternate * self.sector..(self.alternate + 1) * self.sector);
        Ok(Backup { offset: backup * self.sector, bytes, stale })
    }
}

/// The protective partition covers the whole disk, or as much as its 32 bits can say.
fn widen_protective_mbr(head: &mut [u8], last: u64) {
    for entry in 0..4 {
        let at = 446 + entry * 16;
        if head[at + 4] == 0xee && u32_at(head, at + 8) == 1 {
            let sectors = u32::try_from(last).unwrap_or(u32::MAX);
            head[at + 12..at + 16].copy_from_slice(&sectors.to_le_bytes());
        }
    }
}

fn seal(header: &mut [u8]) {
    header[16..20].fill(0);
    let crc = crc32(header);
    header[16..20].copy_from_slice(&crc.to_le_bytes());
}

fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum()
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let word = bytes.get(at..at + 4).and_then(|b| b.try_into().ok());
    word.map_or(0, u32::from_le_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let word = bytes.get(at..at + 8).and_then(|b| b.try_into().ok());
    word.map_or(0, u64::from_le_bytes)
}

fn guid_at(bytes: &[u8], at: usize) -> [u8; 16] {
    bytes.get(at..at + 16).and_then(|b| b.try_into().ok()).unwrap_or_default()
}

fn put_u64(bytes: &mut [u8], at: usize, value: u64) {
    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
}
