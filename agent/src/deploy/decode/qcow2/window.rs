//! A file that only goes by: the piece of it that is needed now, and the tables that came too early.

use std::collections::BTreeMap;
use std::io::{self, BufRead, ErrorKind};

use super::Qcow2Error;

/// Memory for tables that wait for their turn, in bytes. `qemu-img convert` has none waiting.
const WAITING: usize = 32 << 20;
/// How far ahead of the last cluster a table may be without what lies between being let go: so many clusters, and so
/// many bytes where clusters are small.
const AHEAD: (usize, usize) = (8, 1 << 20);

/// The file.
pub(super) struct Window<R> {
    served: R,
    /// Bytes from [`start`](Self::start) on.
    held: Vec<u8>,
    start: u64,
    tables: Tables,
}

impl<R: BufRead> Window<R> {
    pub(super) fn new(served: R) -> Self {
        Self { served, held: Vec::new(), start: 0, tables: Tables::default() }
    }

    /// Has these tables kept when they go by; 0 is none.
    pub(super) fn expect(&mut self, offsets: &[u64], size: usize) -> Result<(), Qcow2Error> {
        let mut wanted: Vec<u64> = offsets.iter().copied().filter(|offset| *offset != 0).collect();
        wanted.sort_unstable_by(|a, b| b.cmp(a));
        wanted.dedup();
        if wanted.iter().any(|offset| !offset.is_multiple_of(size as u64)) {
            return Err(Qcow2Error::Damaged { what: "an L2 table is not where clusters are" });
        }
        if wanted.last().is_some_and(|first| *first < self.start) {
            return Err(Qcow2Error::OutOfOrder);
        }
        self.tables = Tables { wanted, size, ..Tables::default() };
        self.tables.pass(self.start, &self.held)
    }

    /// The bytes at `offset` as [`at`](Self::at) gives them, with what lies before them kept as long as it is little.
    pub(super) fn ahead(&mut self, offset: u64, len: usize, cluster: usize) -> io::Result<&[u8]> {
        let ahead = offset.checked_sub(self.start).and_then(|ahead| usize::try_from(ahead).ok());
        match ahead.filter(|ahead| *ahead <= AHEAD.1.max(AHEAD.0 * cluster)) {
            Some(ahead) => {
                self.hold(ahead + len)?;
                let held = self.held.get(ahead..).unwrap_or_default();
                Ok(&held[..len.min(held.len())])
            }
            None => self.at(offset, len),
        }
    }

    /// The table at this offset, which has gone by or is still to come.
    ///
    /// What lies before it is kept as long as it is little: QEMU fills up a cluster that is partly taken by compressed
    /// ones, so that one that a table names may stand in front of it.
    pub(super) fn table(&mut self, offset: u64) -> io::Result<Vec<u8>> {
        let size = self.tables.size;
        let passed = self.tables.waiting.contains_key(&offset) || offset + size as u64 <= self.end();
        if !passed && self.ahead(offset, size, size)?.len() < size {
            return Err(Qcow2Error::Short.into());
        }
        Ok(self.tables.waiting.remove(&offset).ok_or(Qcow2Error::OutOfOrder)?)
    }

    /// The bytes at `offset`: `len` of them, or fewer at the end of the file. What lies before is gone then.
    pub(super) fn at(&mut self, offset: u64, len: usize) -> io::Result<&[u8]> {
        let back = offset.checked_sub(self.start).ok_or(Qcow2Error::OutOfOrder)?;
        let gone = usize::try_from(back).unwrap_or(usize::MAX).min(self.held.len());
        self.held.drain(..gone);
        self.start += gone as u64;
        while self.start < offset {
            // The window is empty here: what is skipped is not held.
            let skip = usize::try_from(offset - self.start).unwrap_or(usize::MAX);
            let n = self.take(skip, false)?;
            if n == 0 {
                return Ok(&[]);
            }
            self.start += n as u64;
        }
        self.hold(len)?;
        Ok(&self.held[..len.min(self.held.len())])
    }

    /// Has the window hold `len` bytes, or fewer at the end of the file.
    fn hold(&mut self, len: usize) -> io::Result<()> {
        while self.held.len() < len && self.take(len - self.held.len(), true)? > 0 {}
        Ok(())
    }

    fn end(&self) -> u64 {
        self.start + self.held.len() as u64
    }

    /// Takes at most `most` bytes from the file; how many.
    fn take(&mut self, most: usize, hold: bool) -> io::Result<usize> {
        let at = self.end();
        let bytes = loop {
            match self.served.fill_buf() {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
                Ok(_) => break self.served.fill_buf()?,
            }
        };
        let bytes = &bytes[..bytes.len().min(most)];
        self.tables.pass(at, bytes)?;
        if hold {
            self.held.extend_from_slice(bytes);
        }
        let n = bytes.len();
        self.served.consume(n);
        Ok(n)
    }
}

/// Tables that are to be kept when they go by.
#[derive(Default)]
struct Tables {
    /// Their offsets, the next one last.
    wanted: Vec<u64>,
    size: usize,
    /// The start of the next one.
    partial: Vec<u8>,
    waiting: BTreeMap<u64, Vec<u8>>,
}

impl Tables {
    /// Looks at bytes that go by.
    fn pass(&mut self, at: u64, bytes: &[u8]) -> Result<(), Qcow2Error> {
        while let Some(next) = self.wanted.last().copied() {
            let from = next + self.partial.len() as u64;
            let Some(skip) = from.checked_sub(at).and_then(|skip| usize::try_from(skip).ok()) else {
                return Err(Qcow2Error::OutOfOrder);
            };
            let Some(here) = bytes.get(skip..).filter(|here| !here.is_empty()) else { return Ok(()) };
            let here = &here[..here.len().min(self.size - self.partial.len())];
            self.partial.extend_from_slice(here);
            if self.partial.len() < self.size {
                return Ok(());
            }
            if (self.waiting.len() + 1) * self.size > WAITING {
                return Err(Qcow2Error::OutOfOrder);
            }
            self.waiting.insert(next, std::mem::take(&mut self.partial));
            self.wanted.pop();
        }
        Ok(())
    }
}
