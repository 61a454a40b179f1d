//! Master boot records, as Linux reads them (`block/partitions/msdos.c`): what it would not show is no partition here
//! either.

use super::table::{Extent, TableError};
use super::{AlignedBuffer, BlockDevice, DiskError, read_exact};

const MARK: [u8; 2] = [0x55, 0xaa];
const ENTRIES: usize = 446;
const ENTRY: usize = 16;
/// Type of the entry that stands before a GPT.
const PROTECTIVE: u8 = 0xee;
/// Types of a partition that holds further ones.
const EXTENDED: [u8; 3] = [0x05, 0x0f, 0x85];
/// Most partitions inside an extended one; more than anybody makes, and an end to a circle.
const MAX_LOGICAL: u64 = 60;

/// A record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mbr {
    sector: u32,
    protective: bool,
    /// Those in use.
    entries: Vec<Entry>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    number: u64,
    kind: u8,
    first: u32,
    sectors: u32,
}

/// Whether a disk that begins with these bytes has the mark of a boot record.
pub(super) fn is_marked(head: &[u8]) -> bool {
    head.get(510..512) == Some(&MARK)
}

/// The four entries of the record in a sector.
fn raw(sector: &[u8]) -> &[[u8; ENTRY]] {
    let table = sector.get(ENTRIES..ENTRIES + 4 * ENTRY).filter(|_| is_marked(sector));
    table.unwrap_or_default().as_chunks().0
}

/// The entries in use of the record in a sector; none when it is no table, such as the boot sector of a file system.
fn entries(sector: &[u8]) -> Vec<Entry> {
    let raw = raw(sector);
    if raw.iter().any(|entry| !matches!(entry[0], 0 | 0x80)) {
        return Vec::new();
    }
    let entries = (1..).zip(raw).map(|(number, entry)| Entry::read(number, entry));
    entries.filter(|entry| entry.kind != 0 && entry.sectors > 0).collect()
}

impl Mbr {
    /// The record in the first bytes of a disk of this sector size; without entries when it has none.
    pub fn read(head: &[u8], sector: u32) -> Self {
        let protective = raw(head).iter().any(|raw| {
            let entry = Entry::read(0, raw);
            entry.kind == PROTECTIVE && entry.first == 1
        });
        Self { sector, protective, entries: entries(head) }
    }

    /// Whether it says that a GPT follows (UEFI specification 2.10, section 5.2.3): firmware and kernel look for one
    /// only then.
    pub fn is_protective(&self) -> bool {
        self.protective
    }

    /// The primary partitions; an extended one counts as one. None where a GPT is said to follow.
    pub fn primaries(&self) -> Vec<Extent> {
        if self.entries.iter().any(|entry| entry.kind == PROTECTIVE) {
            return Vec::new();
        }
        self.entries.iter().map(Entry::extent).collect()
    }

    /// Where an earlier system may have had partitions, whatever else the record says.
    pub(super) fn extents(&self) -> Vec<Extent> {
        let own = self.entries.iter().filter(|entry| entry.kind != PROTECTIVE && entry.first > 0);
        own.map(Entry::extent).collect()
    }

    /// All partitions of the disk that begins with this record; of an extended one only its first sector, as the others
    /// are inside of it.
    ///
    /// # Errors
    /// When a record inside of an extended partition cannot be read.
    pub fn partitions(&self, device: &dyn BlockDevice) -> Result<Vec<Extent>, DiskError> {
        let mut all = self.primaries();
        for extent in &mut all {
            if self.entries.iter().any(|e| e.number == extent.number && EXTENDED.contains(&e.kind)) {
                extent.last = extent.first;
            }
        }
        let extended = self.entries.iter().find(|entry| EXTENDED.contains(&entry.kind));
        if let Some(extended) = extended.filter(|_| !all.is_empty()) {
            all.extend(self.logical(device, u64::from(extended.first))?);
        }
        Ok(all)
    }

    /// The partitions inside an extended one: a chain of records, each with its partition and the place of the next.
    fn logical(&self, device: &dyn BlockDevice, extended: u64) -> Result<Vec<Extent>, DiskError> {
        let bytes = u64::from(self.sector);
        let mut buffer = AlignedBuffer::zeroed(self.sector as usize);
        let (mut found, mut at) = (Vec::new(), extended);
        for _ in 0..MAX_LOGICAL {
            let Some(offset) = at.checked_mul(bytes).filter(|offset| offset + bytes <= device.size()) else {
                break;
            };
            read_exact(device, &mut buffer, offset)?;
            let record = entries(&buffer);
            let is_link = |entry: &&Entry| EXTENDED.contains(&entry.kind);
            // Theirs count from this record, the next one's place from the extended partition.
            for entry in record.iter().filter(|entry| !is_link(entry)) {
                let number = 5 + found.len() as u64;
                let Extent { first, last, .. } = entry.extent();
                found.push(Extent { number, first: at + first, last: at + last, name: None });
            }
            let Some(next) = record.iter().find(is_link) else { break };
            at = extended + u64::from(next.first);
        }
        Ok(found)
    }

    /// End of the last partition for sectors of this size, in bytes.
    fn end(&self, sector: u32) -> u64 {
        let last = self.primaries().iter().map(|extent| extent.last).max();
        last.map_or(0, |last| (last + 1).saturating_mul(u64::from(sector)))
    }

    /// Whether every partition fits into so many bytes; `too_small` when not. What would fit with sectors of 512 bytes
    /// was made for those, which the record itself does not tell.
    fn check(&self, bytes: u64, too_small: TableError) -> Result<(), TableError> {
        if self.end(self.sector) <= bytes {
            Ok(())
        } else if self.sector != 512 && self.end(512) <= bytes {
            Err(TableError::SectorSize { image: 512, disk: self.sector })
        } else {
            Err(too_small)
        }
    }

    /// Whether every partition fits on a disk of this many bytes.
    ///
    /// # Errors
    /// [`TableError::TooLarge`], [`TableError::SectorSize`].
    pub(super) fn check_fits(&self, disk: u64) -> Result<(), TableError> {
        self.check(disk, TableError::TooLarge { needed: self.end(self.sector), disk })
    }

    /// Whether an image of this many bytes holds every partition to its end.
    ///
    /// # Errors
    /// [`TableError::Damaged`], [`TableError::SectorSize`].
    pub(super) fn check_holds(&self, image: u64) -> Result<(), TableError> {
        self.check(image, TableError::Damaged { what: "the image ends inside a partition" })
    }
}

impl Entry {
    fn read(number: u64, raw: &[u8; ENTRY]) -> Self {
        let word = |at: usize| u32::from_le_bytes([raw[at], raw[at + 1], raw[at + 2], raw[at + 3]]);
        Self { number, kind: raw[4], first: word(8), sectors: word(12) }
    }

    /// Only those that are not empty have one.
    fn extent(&self) -> Extent {
        let first = u64::from(self.first);
        Extent {
            number: self.number,
            first,
            last: (first + u64::from(self.sectors)).saturating_sub(1),
            name: None,
        }
    }
}

/// Has the protective entry cover the whole disk, or as much of it as its 32 bits can say. One of several entries
/// covers what the others leave, and stays.
pub(super) fn widen_protective(head: &mut [u8], last: u64) {
    let used: Vec<usize> =
        (0..4).filter(|index| raw(head).get(*index).is_some_and(|raw| raw[4] != 0)).collect();
    let [index] = used[..] else { return };
    let at = ENTRIES + index * ENTRY;
    if head[at + 4] == PROTECTIVE && head[at + 8..at + 12] == [1, 0, 0, 0] {
        let sectors = u32::try_from(last).unwrap_or(u32::MAX);
        head[at + 12..at + 16].copy_from_slice(&sectors.to_le_bytes());
    }
}
