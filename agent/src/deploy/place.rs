//! Decides what becomes of each decoded block: checked, withheld, or written.

use farrier_shared::contract::Digest;
use sha2::{Digest as _, Sha256};

use super::DeployError;
use super::format::check_is_disk_image;
use super::write::Block;
use crate::disk::BlockDevice;
use crate::disk::gpt::Gpt;

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

/// The blocks so far.
#[derive(Debug)]
pub(super) struct Placement {
    disk: String,
    size: u64,
    sector: u32,
    content: Option<Sha256>,
    /// The table of the image, once its first block has come.
    gpt: Option<Gpt>,
    first: Option<Block>,
    tail: Vec<Block>,
    length: u64,
}

/// The whole image, placed.
#[derive(Debug)]
pub(super) struct Content {
    /// The first block: at most 1 MiB, and all there is of a smaller image.
    pub(super) first: Block,
    /// What overlaps the last MiB of the disk, in order.
    pub(super) tail: Vec<Block>,
    pub(super) gpt: Option<Gpt>,
    /// Bytes decoded.
    pub(super) length: u64,
    /// Digest of the decoded bytes, unless the served bytes are the same.
    pub(super) digest: Option<Digest>,
}

impl Placement {
    /// `hash` the decoded bytes when they are not the served ones.
    pub(super) fn new(device: &dyn BlockDevice, hash: bool) -> Self {
        Self {
            disk: device.name().to_owned(),
            size: device.size(),
            sector: device.logical_sector(),
            content: hash.then(Sha256::new),
            gpt: None,
            first: None,
            tail: Vec::new(),
            length: 0,
        }
    }

    /// Takes the next block in order. Nothing is written before the first has been found to be the start of a disk
    /// image that fits this disk.
    pub(super) fn place(&mut self, block: Block) -> Result<Placed, DeployError> {
        let end = block.offset + block.len as u64;
        if end > self.size {
            return Err(DeployError::Oversize { disk: self.disk.clone(), size: self.size });
        }
        if let Some(hash) = &mut self.content {
            hash.update(&block.buffer[..block.len]);
        }
        self.length = end;
        if block.offset == 0 {
            let head = &block.buffer[..block.len];
            check_is_disk_image(head)?;
            let table = |source| DeployError::Table { disk: self.disk.clone(), source };
            let gpt = Gpt::read(head, self.sector).map_err(table)?;
            if let Some(gpt) = &gpt {
                gpt.check_fits(self.size).map_err(table)?;
            }
            self.gpt = gpt;
            self.first = Some(block);
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
        let first = self.first.ok_or(DeployError::NotAnImage { hint: " (nothing was served)" })?;
        if let Some(gpt) = &self.gpt {
            gpt.check_holds(self.length)
                .map_err(|source| DeployError::Table { disk: self.disk.clone(), source })?;
        }
        Ok(Content {
            first,
            tail: self.tail,
            gpt: self.gpt,
            length: self.length,
            digest: self.content.map(|hash| Digest::from_bytes(hash.finalize().into())),
        })
    }
}
