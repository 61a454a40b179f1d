//! GUID partition tables (UEFI specification 2.10, section 5.3): checked in the image's first bytes before
//! anything is destroyed, and completed for the disk's real size before they are written.

use std::ops::Range;

use super::mbr;
use super::table::{Extent, TableError};

/// Sector sizes a table may be made for, in bytes.
const SECTOR_SIZES: [u32; 2] = [512, 4096];
const SIGNATURE: &[u8; 8] = b"EFI PART";

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
    /// Its name; empty when it has none.
    pub name: String,
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

/// The sector size a GPT in these bytes is made for; [`None`] without a GPT.
fn sector_size(head: &[u8]) -> Option<u32> {
    SECTOR_SIZES.into_iter().find(|size| {
        let at = *size as usize;
        head.get(at..at + 8) == Some(SIGNATURE)
    })
}

impl Gpt {
    /// Whether a disk that begins with these bytes has the mark of one.
    pub(super) fn is_marked(head: &[u8]) -> bool {
        sector_size(head).is_some()
    }

    /// The table in the first bytes of an image, checked for a disk of this sector size; [`None`] without one.
    ///
    /// # Errors
    /// When it is made for another sector size, or damaged.
    pub fn read(head: &[u8], disk_sector: u32) -> Result<Option<Self>, TableError> {
        let Some(image) = sector_size(head) else { return Ok(None) };
        if image != disk_sector {
            return Err(TableError::SectorSize { image, disk: disk_sector });
        }
        Self::parse(head, image).map(Some)
    }

    /// Bytes of the disk the image in these first bytes was made for, if it has a sound GPT.
    pub fn declared_size(head: &[u8]) -> Option<u64> {
        let gpt = Self::parse(head, sector_size(head)?).ok()?;
        gpt.alternate.checked_add(1)?.checked_mul(gpt.sector)
    }

    fn parse(head: &[u8], sector: u32) -> Result<Self, TableError> {
        let damaged = |what| TableError::Damaged { what };
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
        let (before, behind) =
            (entries.start as u64 / u64::from(sector), (entries.end as u64).div_ceil(u64::from(sector)));
        let step = usize::try_from(entry).map_err(|_| damaged("entry size"))?;
        let (mut partitions, mut last_used) = (Vec::new(), 0);
        for (number, entry) in (1..).zip(head[entries.clone()].chunks_exact(step)) {
            if entry[..16].iter().all(|b| *b == 0) {
                continue;
            }
            let (first, last) = (u64_at(entry, 32), u64_at(entry, 40));
            if first > last {
                return Err(damaged("a partition ends before it starts"));
            }
            if first < 2 || (first < behind && last >= before) {
                return Err(damaged("a partition lies over the table"));
            }
            let (kind, guid) = (guid_at(entry, 0), guid_at(entry, 16));
            partitions.push(Entry { number, kind, guid, first, last, name: name(&entry[56..128]) });
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
            partitions,
            disk_guid: guid_at(head, start + 56),
        })
    }

    /// First sector of the backup entries on a disk of this many bytes, when everything fits before it.
    fn backup_start(&self, disk_size: u64) -> Result<u64, TableError> {
        let entries = (self.entries.len() as u64).div_ceil(self.sector);
        let too_large = TableError::TooLarge {
            needed: self.last_used.saturating_add(2 + entries).saturating_mul(self.sector),
            disk: disk_size,
        };
        let start = (disk_size / self.sector).checked_sub(entries + 1);
        start.filter(|start| *start > self.last_used).ok_or(too_large)
    }

    /// Whether every partition and the backup table fit on a disk of this many bytes.
    ///
    /// # Errors
    /// [`TableError::TooLarge`].
    pub fn check_fits(&self, disk_size: u64) -> Result<(), TableError> {
        self.backup_start(disk_size).map(|_| ())
    }

    /// Whether an image of this many bytes holds every partition to its end.
    ///
    /// # Errors
    /// [`TableError::Damaged`].
    pub fn check_holds(&self, image: u64) -> Result<(), TableError> {
        let end = self.last_used.saturating_add(1).saturating_mul(self.sector);
        if self.partitions.is_empty() || end <= image {
            return Ok(());
        }
        Err(TableError::Damaged { what: "the image ends inside a partition" })
    }

    /// Has [`complete`](Self::complete) grow the last partition to the end of the disk, less what keeps its end at a
    /// whole MiB. Only the table changes: the file system inside is grown by the installed system.
    ///
    /// # Errors
    /// Without a partition; when the partition of the highest number is not the last on the disk.
    pub fn grow_last(&mut self) -> Result<(), TableError> {
        let last = self.partitions.last().ok_or(TableError::NothingToGrow)?.number;
        let at_end = self.partitions.iter().max_by_key(|partition| partition.last);
        let behind = at_end.map_or(last, |partition| partition.number);
        if behind != last {
            return Err(TableError::NotAtTheEnd { last, behind });
        }
        self.grows = Some(last);
        Ok(())
    }

    /// Last sector of the partition that grows, when its table's backup begins at this sector; [`None`] when there is
    /// no room.
    fn grown_end(&self, backup: u64) -> Option<u64> {
        let mib = (1 << 20) / self.sector;
        let end = backup / mib * mib;
        (end > self.last_used + 1).then(|| end - 1)
    }

    /// Rewrites the entry that grows, and the checksum of all entries in the primary header.
    fn grow(&self, head: &mut [u8], backup: u64) {
        let Some(index) = self.grows.and_then(|number| usize::try_from(number - 1).ok()) else { return };
        let Some(last) = self.grown_end(backup) else { return };
        put_u64(&mut head[self.entries.clone()], index * self.step + 40, last);
        let sum = crc32(&head[self.entries.clone()]);
        let at = self.header.start + 88;
        head[at..at + 4].copy_from_slice(&sum.to_le_bytes());
    }

    /// Where the partitions are once the table is complete for a disk of this many bytes.
    pub(super) fn extents(&self, disk_size: u64) -> Vec<Extent> {
        let grown = self.backup_start(disk_size).ok().and_then(|backup| self.grown_end(backup));
        let extent = |entry: &Entry| {
            let grown = grown.filter(|_| self.grows == Some(entry.number));
            let name = Some(entry.name.clone()).filter(|name| !name.is_empty());
            Extent { number: entry.number, first: entry.first, last: grown.unwrap_or(entry.last), name }
        };
        self.partitions.iter().map(extent).collect()
    }

    /// Completes the table for a disk of this many bytes: corrects the primary header and the protective MBR in
    /// `head`, the bytes the table was read from, and gives what belongs at the end of the disk.
    ///
    /// # Errors
    /// [`TableError::TooLarge`].
    pub fn complete(&self, head: &mut [u8], disk_size: u64) -> Result<Backup, TableError> {
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
        mbr::widen_protective(head, last);
        // Only a place after the last partition can have held the image's backup header.
        let moved = self.alternate != last && (self.last_used + 1..last).contains(&self.alternate);
        let stale = moved.then(|| self.alternate * self.sector..(self.alternate + 1) * self.sector);
        Ok(Backup { offset: backup * self.sector, bytes, stale })
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

/// A name in UTF-16, ended by a zero where it is shorter than its field.
fn name(field: &[u8]) -> String {
    let units = field.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
    let text: Vec<u16> = units.take_while(|unit| *unit != 0).collect();
    String::from_utf16_lossy(&text)
}

fn put_u64(bytes: &mut [u8], at: usize, value: u64) {
    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
}
