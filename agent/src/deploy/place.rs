//! Decides what becomes of each decoded block: checked, withheld, or written.

use farrier_shared::contract::Digest;
use farrier_shared::contract::options::Grow;
use sha2::{Digest as _, Sha256};
use twox_hash::XxHash3_128;

use super::DeployError;
use super::format::check_is_disk_image;
use super::write::Block;
use crate::disk::BlockDevice;
use crate::disk::table::Table;

/// How much of the end of the disk is withheld: a backup GPT there makes some firmware boot a disk whose first
/// sectors are empty.
const TAIL: u64 = 1 << 20;

/// What to do with a block.
#[derive(Debug)]
pub(super) enum Placed {
    /// Write it now.
    Write(Block),
    /// It is kept; nothing to do.
    Withheld,
}

/// What to compute of the decoded bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Hashing {
    /// The digest, to compare with one that was ordered.
    pub(super) digest: bool,
    /// The checksum that the disk must read back as.
    pub(super) checksum: bool,
}

/// The blocks so far.
pub(super) struct Placement {
    disk: String,
    size: u64,
    sector: u32,
    digest: Option<Sha256>,
    checksum: Option<XxHash3_128>,
    /// The image's first block and the table in it, once they have come.
    first: Option<(Block, Table)>,
    tail: Vec<Block>,
    length: u64,
    grow: Grow,
}

/// The whole image, placed.
#[derive(Debug)]
pub(super) struct Content {
    /// The first block: at most 1 MiB, and all there is of a smaller image.
    pub(super) first: Block,
    /// What overlaps the last MiB of the disk, in order.
    pub(super) tail: Vec<Block>,
    pub(super) table: Table,
    /// Bytes decoded.
    pub(super) length: u64,
    /// Digest of the decoded bytes, if it was to be computed.
    pub(super) digest: Option<Digest>,
    /// XXH3 of the decoded bytes, if it was to be computed: it tells a faulty disk, which is no adversary, and costs
    /// a tenth of a digest.
    pub(super) checksum: Option<u128>,
}

impl Placement {
    pub(super) fn new(device: &dyn BlockDevice, hashing: Hashing, grow: Grow) -> Self {
        Self {
            disk: device.name().to_owned(),
            size: device.size(),
            sector: device.logical_sector(),
            digest: hashing.digest.then(Sha256::new),
            checksum: hashing.checksum.then(XxHash3_128::new),
            first: None,
            tail: Vec::new(),
            length: 0,
            grow,
        }
    }

    /// Takes the next block in order. Nothing is written before the first has been found to be the start of a disk
    /// image that fits this disk.
    pub(super) fn place(&mut self, block: Block) -> Result<Placed, DeployError> {
        let end = block.offset + block.len as u64;
        if end > self.size {
            return Err(DeployError::Oversize { disk: self.disk.clone(), size: self.size });
        }
        let bytes = &block.buffer[..block.len];
        if let Some(digest) = &mut self.digest {
            digest.update(bytes);
        }
        if let Some(checksum) = &mut self.checksum {
            checksum.write(bytes);
        }
        self.length = end;
        if block.offset == 0 {
            let head = &block.buffer[..block.len];
            check_is_disk_image(head)?;
            let table = |source| DeployError::Table { disk: self.disk.clone(), source };
            let mut found = Table::read(head, self.sector).map_err(table)?;
            found.check_fits(self.size).map_err(table)?;
            if self.grow == Grow::Last {
                found.grow_last().map_err(table)?;
            }
            self.first = Some((block, found));
            return Ok(Placed::Withheld);
        }
        if end > self.size.saturating_sub(TAIL) {
            self.tail.push(block);
            return Ok(Placed::Withheld);
        }
        Ok(Placed::Write(block))
    }

    /// All blocks have come.
    pub(super) fn finish(self) -> Result<Content, DeployError> {
        let (first, table) =
            self.first.ok_or(DeployError::NotAnImage { hint: " (it decodes to nothing)" })?;
        table
            .check_holds(self.length)
            .map_err(|source| DeployError::Table { disk: self.disk.clone(), source })?;
        Ok(Content {
            first,
            tail: self.tail,
            table,
            length: self.length,
            digest: self.digest.map(|hash| Digest::from_bytes(hash.finalize().into())),
            checksum: self.checksum.map(|hash| hash.finish_128()),
        })
    }
}
