//! What a disk holds that an installed system might take for its own: identifiers, and members of arrays, volume
//! groups and pools.

use std::collections::BTreeMap;
use std::io;

use super::gpt::Gpt;
use super::mbr::Mbr;
use super::signature::{Ends, Found, found};
use super::{AlignedBuffer, BlockDevice, DiskError, read_exact};

/// Partitions of a disk that are looked into: two MiB are read of each.
const PARTITIONS: usize = 64;
/// How much of a disk is read for its table.
const HEAD: u64 = 1 << 20;

/// What was found on one disk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inventory {
    /// Path of the disk.
    pub disk: String,
    identifiers: Vec<Named>,
    members: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Named {
    /// Whose identifier it is, such as `ext`.
    kind: &'static str,
    /// As on the disk.
    bytes: Vec<u8>,
    place: String,
}

impl Inventory {
    /// Reads the table of a disk and both ends of it and of each partition.
    ///
    /// # Errors
    /// When the disk cannot be read.
    pub fn take(device: &dyn BlockDevice) -> Result<Self, DiskError> {
        let len = usize::try_from(device.size().min(HEAD)).unwrap_or_default();
        let mut head = AlignedBuffer::zeroed(len);
        read_exact(device, &mut head, 0)?;
        let mut inventory = Self { disk: device.name().to_owned(), ..Self::default() };
        let mut extents = Vec::new();
        if let Ok(Some(gpt)) = Gpt::read(&head, device.logical_sector()) {
            inventory.name("disk", &gpt.disk_guid, "the disk");
            for entry in gpt.partitions.iter().take(PARTITIONS) {
                let place = format!("partition {}", entry.number);
                inventory.name("partition", &entry.guid, &place);
                extents.push((place, entry.first, entry.last));
            }
        } else {
            let partitions = Mbr::read(&head, device.logical_sector()).extents();
            extents
                .extend(partitions.into_iter().map(|p| (format!("partition {}", p.number), p.first, p.last)));
        }
        inventory.look(device, "the disk", extents.is_empty())?;
        let sector = u64::from(device.logical_sector());
        for (place, first, last) in extents {
            let bytes = |sectors: u64| sectors.saturating_mul(sector).min(device.size() / sector * sector);
            let (start, end) = (bytes(first), bytes(last.saturating_add(1)));
            if start < end {
                inventory.look(&Part { device, start, size: end - start }, &place, true)?;
            }
        }
        Ok(inventory)
    }

    /// Looks at the ends of a disk or partition. What a partitioned disk has at its own ends, its last partition may
    /// have at its end as well: only members count there.
    fn look(&mut self, device: &dyn BlockDevice, place: &str, whole: bool) -> Result<(), DiskError> {
        let ends = Ends::read(device)?;
        for Found { kind, identifier } in found(&ends) {
            if is_member(kind) {
                self.members.push(format!("{kind} on {place}"));
            }
            if let Some(bytes) = identifier.filter(|_| whole) {
                self.identifiers.push(Named { kind, bytes, place: place.to_owned() });
            }
        }
        Ok(())
    }

    fn name(&mut self, kind: &'static str, guid: &[u8; 16], place: &str) {
        if guid.iter().any(|b| *b != 0) {
            self.identifiers.push(Named { kind, bytes: guid.to_vec(), place: place.to_owned() });
        }
    }

    /// Members of arrays (md), volume groups (LVM2) and pools (ZFS), in words; [`None`] when there are none.
    pub fn members(&self) -> Option<String> {
        let first = self.members.first()?;
        let more = match self.members.len() - 1 {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        Some(format!("{} holds {first}{more}, which an installed system may assemble", self.disk))
    }

    /// Which identifiers both disks have, in words; [`None`] when they have none in common.
    pub fn repeats(&self, installed: &Self) -> Option<String> {
        let places: BTreeMap<(&str, &[u8]), &str> = installed
            .identifiers
            .iter()
            .map(|named| ((named.kind, &named.bytes[..]), &named.place[..]))
            .collect();
        let mut repeated = self.identifiers.iter().filter_map(|named| {
            let own = places.get(&(named.kind, &named.bytes[..]))?;
            Some((named, *own))
        });
        let (named, own) = repeated.next()?;
        let more = match repeated.count() {
            0 => String::new(),
            more => format!(", and {more} more such"),
        };
        Some(format!(
            "{}: {} has the {} identifier of {own} of the disk just installed, {}{more}; the wrong disk may be mounted \
             or booted",
            self.disk, named.place, named.kind, installed.disk
        ))
    }
}

/// Whether a mark is of a part of something larger, which a running system puts together by itself.
fn is_member(mark: &str) -> bool {
    mark == "LVM2" || mark == "ZFS" || mark.starts_with("md ")
}

/// A partition as a device of its own, to read.
struct Part<'a> {
    device: &'a dyn BlockDevice,
    start: u64,
    size: u64,
}

impl BlockDevice for Part<'_> {
    fn name(&self) -> &str {
        self.device.name()
    }

    fn size(&self) -> u64 {
        self.size
    }

    fn logical_sector(&self) -> u32 {
        self.device.logical_sector()
    }

    fn write_at(&self, _: &[u8], _: u64) -> io::Result<usize> {
        Err(io::Error::from(io::ErrorKind::ReadOnlyFilesystem))
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.device.read_at(buffer, self.start + offset)
    }

    fn flush(&self) -> io::Result<()> {
        Ok(())
    }

    fn forget_cache(&self) -> io::Result<()> {
        Ok(())
    }

    fn reread_partitions(&self) -> io::Result<()> {
        Ok(())
    }

    fn add_partition(&self, _: u64, _: u64, _: u64) -> io::Result<()> {
        Ok(())
    }
}
