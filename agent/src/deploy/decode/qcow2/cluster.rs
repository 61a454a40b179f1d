//! Entries of the tables, and compressed clusters.

use std::io;

use flate2::{Decompress, FlushDecompress, Status};
use zstd::stream::raw::{Decoder, InBuffer, Operation as _, OutBuffer};

use super::super::WINDOW_LOG;
use super::Qcow2Error;
use super::header::{Compression, Header};

/// Bits 9 to 55 of an entry.
const OFFSET: u64 = 0x00ff_ffff_ffff_fe00;

/// Where a cluster of the disk is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cluster {
    /// Nowhere: it reads as zeros.
    Zero,
    Plain {
        offset: u64,
    },
    /// In at most `len` bytes.
    Compressed {
        offset: u64,
        len: usize,
    },
}

/// The offset in an L1 entry or an entry of a plain cluster; 0 for none.
pub(super) fn offset(entry: u64) -> u64 {
    entry & OFFSET
}

impl Cluster {
    /// An entry of an L2 table.
    pub(super) fn parse(entry: u64, header: &Header) -> Result<Self, Qcow2Error> {
        if entry & (1 << 62) != 0 {
            let shift = 62 - (header.cluster_bits - 8);
            let offset = entry & ((1 << shift) - 1);
            let sectors = (entry & ((1 << 62) - 1)) >> shift;
            // At most two clusters: the field has one bit more than a cluster has sectors.
            let len = (sectors + 1) * 512 - offset % 512;
            return Ok(Self::Compressed { offset, len: usize::try_from(len).unwrap_or(usize::MAX) });
        }
        if header.zero_flag && entry & 1 != 0 || offset(entry) == 0 {
            return Ok(Self::Zero);
        }
        if !offset(entry).is_multiple_of(header.cluster_size() as u64) {
            return Err(Qcow2Error::Damaged { what: "a cluster is not where clusters are" });
        }
        Ok(Self::Plain { offset: offset(entry) })
    }
}

/// Decompresses clusters, each a stream of its own.
pub(super) enum Inflate {
    Deflate(Decompress),
    Zstd(Decoder<'static>),
}

impl Inflate {
    pub(super) fn new(compression: Compression) -> io::Result<Self> {
        Ok(match compression {
            Compression::Deflate => Self::Deflate(Decompress::new(false)),
            Compression::Zstd => {
                let mut decoder = Decoder::new()?;
                decoder.set_parameter(zstd::stream::raw::DParameter::WindowLogMax(WINDOW_LOG))?;
                Self::Zstd(decoder)
            }
        })
    }

    /// Fills the cluster. Its bytes may be followed by others, and `cut` says that the file ended before all came.
    pub(super) fn cluster(&mut self, bytes: &[u8], cluster: &mut [u8], cut: bool) -> Result<(), Qcow2Error> {
        let made = match self {
            Self::Deflate(inflate) => {
                inflate.reset(false);
                let status = inflate.decompress(bytes, cluster, FlushDecompress::Finish);
                // Where the file ends no more bytes can have been part of the stream, so it must have ended, too.
                status
                    .ok()
                    .filter(|status| !cut || *status == Status::StreamEnd)
                    .and_then(|_| usize::try_from(inflate.total_out()).ok())
            }
            Self::Zstd(decoder) => inflate_zstd(decoder, bytes, cluster).ok(),
        };
        match made {
            Some(made) if made == cluster.len() => Ok(()),
            _ if cut => Err(Qcow2Error::Short),
            _ => Err(Qcow2Error::Damaged { what: "a compressed cluster is corrupt" }),
        }
    }
}

fn inflate_zstd(decoder: &mut Decoder<'static>, bytes: &[u8], cluster: &mut [u8]) -> io::Result<usize> {
    decoder.reinit()?;
    let (mut input, mut output) = (InBuffer::around(bytes), OutBuffer::around(cluster));
    loop {
        let before = (input.pos(), output.pos());
        decoder.run(&mut input, &mut output)?;
        if output.pos() == output.capacity() || (input.pos(), output.pos()) == before {
            return Ok(output.pos());
        }
    }
}
