//! Partition tables of either kind: what an image has, checked against the disk it goes to.

use super::gpt::Gpt;
use super::mbr::{self, Mbr};
use super::{BlockDevice, DiskError};

/// A table that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
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

/// Where a partition is, in sectors of the disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extent {
    /// Number, counted from one.
    pub number: u64,
    /// First sector.
    pub first: u64,
    /// Last sector.
    pub last: u64,
    /// Its name, where the table has names.
    pub name: Option<String>,
}

/// The table of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Table {
    /// A GUID partition table.
    Gpt(Gpt),
    /// A master boot record alone.
    Mbr(Mbr),
}

/// Whether these first bytes of a disk hold a partition table at all: the least an image must have.
pub fn looks_partitioned(head: &[u8]) -> bool {
    mbr::is_marked(head) || Gpt::is_marked(head)
}

impl Table {
    /// The table in the first bytes of an image, checked for a disk of this sector size.
    ///
    /// # Errors
    /// When it is made for another sector size, or damaged.
    pub fn read(head: &[u8], sector: u32) -> Result<Self, TableError> {
        let mbr = Mbr::read(head, sector);
        match (Gpt::read(head, sector)?, mbr.is_protective()) {
            (Some(gpt), true) => Ok(Self::Gpt(gpt)),
            (Some(_), false) => Err(TableError::Damaged { what: "no protective MBR before the GPT" }),
            (None, true) => Err(TableError::Damaged { what: "no GPT behind the protective MBR" }),
            (None, false) => Ok(Self::Mbr(mbr)),
        }
    }

    /// Whether everything fits on a disk of this many bytes.
    ///
    /// # Errors
    /// [`TableError::TooLarge`].
    pub fn check_fits(&self, disk: u64) -> Result<(), TableError> {
        match self {
            Self::Gpt(gpt) => gpt.check_fits(disk),
            Self::Mbr(mbr) => mbr.check_fits(disk),
        }
    }

    /// Whether an image of this many bytes holds every partition to its end.
    ///
    /// # Errors
    /// [`TableError::Damaged`].
    pub fn check_holds(&self, image: u64) -> Result<(), TableError> {
        match self {
            Self::Gpt(gpt) => gpt.check_holds(image),
            Self::Mbr(mbr) => mbr.check_holds(image),
        }
    }

    /// Has the last partition take the rest of the disk: [`Gpt::grow_last`].
    ///
    /// # Errors
    /// As there, and without a GPT.
    pub fn grow_last(&mut self) -> Result<(), TableError> {
        match self {
            Self::Gpt(gpt) => gpt.grow_last(),
            Self::Mbr(_) => Err(TableError::NothingToGrow),
        }
    }

    /// How many sectors at the start of the disk tell firmware and kernel that there is a table: without them nothing
    /// boots, and no partition holds any of them.
    pub fn marks(&self) -> usize {
        match self {
            Self::Gpt(_) => 2,
            Self::Mbr(_) => 1,
        }
    }

    /// The partitions of a disk that holds everything of the image behind [`marks`](Self::marks).
    ///
    /// # Errors
    /// When the disk cannot be read.
    pub fn partitions(&self, device: &dyn BlockDevice) -> Result<Vec<Extent>, DiskError> {
        match self {
            Self::Gpt(gpt) => Ok(gpt.extents(device.size())),
            Self::Mbr(mbr) => mbr.partitions(device),
        }
    }
}
