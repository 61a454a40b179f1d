//! qcow2 as a stream (QEMU, `docs/interop/qcow2.rst`), in memory that does not grow with the image.
//!
//! The format is made for seeking, and a download does not seek. What makes it streamable is the order in which
//! `qemu-img convert` writes: header and L1 table first, each L2 table before the first cluster it names (but for a
//! compressed one that found room in the cluster before), clusters in the order of the disk. This reader takes exactly that: it walks the *disk* in order and the *file* in order, keeps
//! L2 tables that it passes until their turn comes, and refuses an image that would have it go back. The other way,
//! writing clusters wherever they belong as they come, is not taken: the digest of the content and the rule that
//! nothing is written before the partition table has been checked both want the disk in order.
//!
//! Bytes after the last cluster (reference counts) are not looked at; the digest of the served bytes covers them.

mod cluster;
mod header;
mod window;

use std::io::{self, ErrorKind, Read};

use std::io::BufRead;

use self::cluster::{Cluster, Inflate};
use self::header::Header;
use self::window::Window;

/// What is wrong with the image, or what it asks for that a stream cannot give.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Qcow2Error {
    /// It needs another file, a key, or a feature not known here.
    #[error("it {what}; make a plain one: qemu-img convert -O qcow2 OLD NEW")]
    Refused { what: &'static str },
    /// Something is needed that has gone by.
    #[error(
        "its clusters are out of order and cannot be streamed; convert it: qemu-img convert -O qcow2 OLD NEW"
    )]
    OutOfOrder,
    #[error("{what}")]
    Damaged { what: &'static str },
    #[error("it ends too early")]
    Short,
}

impl From<Qcow2Error> for io::Error {
    fn from(error: Qcow2Error) -> Self {
        let kind = match error {
            Qcow2Error::Refused { .. } | Qcow2Error::OutOfOrder => ErrorKind::Unsupported,
            Qcow2Error::Damaged { .. } => ErrorKind::InvalidData,
            Qcow2Error::Short => ErrorKind::UnexpectedEof,
        };
        Self::new(kind, error)
    }
}

/// Size of the disk in the image, by its header.
pub(super) fn declared_size(head: &[u8]) -> Result<u64, Qcow2Error> {
    Ok(Header::parse(head)?.size)
}

/// Reads the disk in the image.
pub(super) struct Reader<R> {
    file: Window<R>,
    header: Header,
    /// Place of each L2 table, 0 for none.
    l1: Vec<u64>,
    /// The L2 table in use, and its index.
    l2: Option<(u64, Option<Vec<u8>>)>,
    inflate: Inflate,
    /// The decompressed cluster being handed out.
    cluster: Vec<u8>,
    /// Which cluster that is.
    held: Option<u64>,
    /// Place on the disk, in bytes.
    position: u64,
}

impl<R: BufRead> Reader<R> {
    /// Reads the header and the L1 table.
    pub(super) fn new(served: R) -> io::Result<Self> {
        let mut file = Window::new(served);
        let header = Header::parse(file.at(0, Header::LONGEST)?)?;
        let length = header.l1_entries * 8;
        // With preallocation an L2 table stands before it.
        let table = file.ahead(header.l1_offset, length, header.cluster_size())?;
        if table.len() < length {
            return Err(Qcow2Error::Short.into());
        }
        let l1: Vec<u64> =
            table.as_chunks().0.iter().map(|entry| cluster::offset(u64::from_be_bytes(*entry))).collect();
        file.expect(&l1, header.cluster_size())?;
        let inflate = Inflate::new(header.compression)?;
        Ok(Self { file, header, l1, l2: None, inflate, cluster: Vec::new(), held: None, position: 0 })
    }

    /// Where the cluster of this index is.
    fn look_up(&mut self, index: u64) -> io::Result<Cluster> {
        let per_table = self.header.cluster_size() as u64 / 8;
        let (table, entry) = (index / per_table, index % per_table);
        if self.l2.as_ref().is_none_or(|(number, _)| *number != table) {
            let at = usize::try_from(table).ok().and_then(|table| self.l1.get(table)).copied().unwrap_or(0);
            let loaded = if at == 0 { None } else { Some(self.file.table(at)?) };
            self.l2 = Some((table, loaded));
        }
        let Some((_, Some(table))) = &self.l2 else { return Ok(Cluster::Zero) };
        let entry = usize::try_from(entry).ok().and_then(|entry| table.as_chunks().0.get(entry));
        let entry = entry.map_or(0, |bytes| u64::from_be_bytes(*bytes));
        Ok(Cluster::parse(entry, &self.header)?)
    }
}

impl<R: BufRead> Read for Reader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let size = self.header.cluster_size();
        let index = self.position >> self.header.cluster_bits;
        let within = usize::try_from(self.position % size as u64).unwrap_or(0);
        let left = self.header.size - self.position;
        let rest = usize::try_from(left).unwrap_or(usize::MAX).min(size - within);
        let len = rest.min(buffer.len());
        if len == 0 {
            return Ok(0);
        }
        let buffer = &mut buffer[..len];
        match self.look_up(index)? {
            Cluster::Zero => buffer.fill(0),
            Cluster::Plain { offset } => {
                let bytes = self.file.at(offset + within as u64, len)?;
                buffer.copy_from_slice(bytes.get(..len).ok_or(Qcow2Error::Short)?);
            }
            Cluster::Compressed { offset, len: most } => {
                if self.held != Some(index) {
                    self.cluster.resize(size, 0);
                    // The length is rounded up to sectors, which the end of the file need not be.
                    let bytes = self.file.at(offset, most)?;
                    self.inflate.cluster(bytes, &mut self.cluster, bytes.len() < most)?;
                    self.held = Some(index);
                }
                buffer.copy_from_slice(&self.cluster[within..within + len]);
            }
        }
        self.position += len as u64;
        Ok(len)
    }
}
