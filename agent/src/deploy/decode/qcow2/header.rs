//! The header: what the image is, and whether it can be read on its own.

use super::Qcow2Error;

/// Smallest and largest cluster QEMU takes, as powers of two.
const CLUSTER_BITS: std::ops::RangeInclusive<u32> = 9..=21;
/// Most entries of the L1 table: 4 MiB of them, which is 256 TiB of disk in clusters of 64 KiB.
const MAX_L1: u64 = 1 << 19;

/// How clusters are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compression {
    Deflate,
    Zstd,
}

/// What of the header matters here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) cluster_bits: u32,
    /// Bytes of the disk.
    pub(super) size: u64,
    /// Entries of the L1 table that the disk needs.
    pub(super) l1_entries: usize,
    pub(super) l1_offset: u64,
    pub(super) compression: Compression,
    /// Version 3 has an entry for "reads as zeros".
    pub(super) zero_flag: bool,
}

impl Header {
    /// Bytes enough for every field read here.
    pub(super) const LONGEST: usize = 112;

    pub(super) fn cluster_size(&self) -> usize {
        1 << self.cluster_bits
    }

    /// Parses the start of a file.
    pub(super) fn parse(head: &[u8]) -> Result<Self, Qcow2Error> {
        let refused = |what| Err(Qcow2Error::Refused { what });
        let damaged = |what| Err(Qcow2Error::Damaged { what });
        let version = u32_at(head, 4)?;
        if !(2..=3).contains(&version) {
            return refused("is of another version than 2 and 3");
        }
        if u64_at(head, 8)? != 0 {
            return refused("needs a backing file");
        }
        if u32_at(head, 32)? != 0 {
            return refused("is encrypted");
        }
        let compression = if version == 2 { Compression::Deflate } else { features(head)? };
        let cluster_bits = u32_at(head, 20)?;
        if !CLUSTER_BITS.contains(&cluster_bits) {
            return damaged("its cluster size is out of range");
        }
        let size = u64_at(head, 24)?;
        // A table of one cluster has eight bytes for each cluster of the disk.
        let needed = size.div_ceil(1 << (2 * cluster_bits - 3));
        let l1_entries = u64::from(u32_at(head, 36)?);
        if needed > MAX_L1 {
            return refused("has a disk too large for its clusters");
        }
        if needed > l1_entries {
            return damaged("its L1 table is too short for its disk");
        }
        let l1_offset = u64_at(head, 40)?;
        if !l1_offset.is_multiple_of(1 << cluster_bits) || l1_offset == 0 || l1_offset >> 56 != 0 {
            return damaged("its L1 table is not at a cluster");
        }
        Ok(Self {
            cluster_bits,
            size,
            l1_entries: usize::try_from(needed).unwrap_or(usize::MAX),
            l1_offset,
            compression,
            zero_flag: version >= 3,
        })
    }
}

/// Incompatible features of version 3: bits that whoever does not know them must not ignore.
fn features(head: &[u8]) -> Result<Compression, Qcow2Error> {
    let refused = |what| Err(Qcow2Error::Refused { what });
    let bits = u64_at(head, 72)?;
    if bits & 0b01 != 0 {
        return refused("was not closed");
    }
    if bits & 0b10 != 0 {
        return refused("is marked corrupt");
    }
    if bits & 0b100 != 0 {
        return refused("has its data in another file");
    }
    if bits & !0b1111 != 0 {
        return refused("has extended L2 entries or a later feature");
    }
    match (bits & 0b1000 != 0, head.get(104)) {
        (false, _) => Ok(Compression::Deflate),
        (true, Some(1)) => Ok(Compression::Zstd),
        (true, Some(_)) => refused("is compressed in another way than deflate or zstd"),
        (true, None) => Err(Qcow2Error::Short),
    }
}

fn u32_at(bytes: &[u8], at: usize) -> Result<u32, Qcow2Error> {
    let field = bytes.get(at..).and_then(<[u8]>::first_chunk).ok_or(Qcow2Error::Short)?;
    Ok(u32::from_be_bytes(*field))
}

fn u64_at(bytes: &[u8], at: usize) -> Result<u64, Qcow2Error> {
    let field = bytes.get(at..).and_then(<[u8]>::first_chunk).ok_or(Qcow2Error::Short)?;
    Ok(u64::from_be_bytes(*field))
}
