//! The stages between the network and the disk, each on a thread of its own.

use std::io::{self, Cursor, ErrorKind, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};
use std::thread;

use farrier_shared::contract::Digest;
use farrier_shared::contract::options::Grow;
use sha2::{Digest as _, Sha256};
use tokio::sync::mpsc::UnboundedReceiver;

use super::decode::{Limits, broken, declared_size, decoder};
use super::feed::{Item, PieceReader};
use super::format::{Format, HEAD};
use super::place::{Content, Hashing, Placed, Placement};
use super::write::{Block, Job, Pool, Writers};
use super::zeros::{Run, is_zero};
use super::{DeployError, Progress, stage};
use crate::disk::table::TableError;
use crate::disk::{AlignedBuffer, BlockDevice};

/// The served bytes, all of them.
#[derive(Debug)]
pub(super) struct Served {
    pub(super) digest: Digest,
    pub(super) bytes: u64,
}

/// Why the stages stopped.
#[derive(Debug)]
pub(super) struct Stopped {
    pub(super) error: DeployError,
    /// What was served, when all of it was still hashed.
    pub(super) served: Option<Served>,
}

impl Stopped {
    fn by(error: DeployError, served: Option<Served>) -> Box<Self> {
        Box::new(Self { error, served })
    }
}

/// What the stages need to know.
pub(super) struct Stages<'a> {
    pub(super) device: &'a Arc<dyn BlockDevice>,
    /// Bytes announced by the server.
    pub(super) total: Option<u64>,
    pub(super) progress: &'a Progress,
    pub(super) limits: Limits,
    /// What is computed of the decoded bytes.
    pub(super) hashing: Hashing,
    pub(super) grow: Grow,
    /// Called once, before the first write.
    pub(super) before_first_write: &'a (dyn Fn() -> Result<(), DeployError> + Sync),
}

impl Stages<'_> {
    /// Runs them until the feed ends or one fails. The content is whole but unverified: compare the digest first.
    ///
    /// A stream that cannot be decoded is still hashed to its end, since "not the bytes you named" and "the bytes
    /// you named are no good" call for different remedies: what was served then comes with the error.
    pub(super) fn run(&self, feed: UnboundedReceiver<Item>) -> Result<(Served, Content), Box<Stopped>> {
        let (to_decoder, pieces) = channel();
        let Pool { empty, give_back } = Pool::new();
        let (filled, blocks) = sync_channel(2);
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            let hash = scope.spawn(|| {
                stage::ahead(c"hash");
                hash(feed, to_decoder, self.progress, &stop)
            });
            let decode = scope.spawn(move || {
                stage::ahead(c"decode");
                self.decode(pieces, &empty, |block| filled.send(block).is_ok())
            });
            let writers = Writers::start(scope, self.device, &give_back, self.progress);
            let placed = self.place(&blocks, &writers, &give_back);
            // The decoder learns that all who use blocks are gone by there being no more buffers.
            drop((give_back, blocks));
            let written = writers.finish();
            let decoded = decode.join().map_err(|_| DeployError::Fault { stage: "decode" }).flatten();
            // A failing stage starves or stops the others, so the cause is told and not what came of it: the disk's
            // own error first, then the decoder's, which makes the content end early.
            let content = written.and(decoded).and(placed);
            stop.store(content.as_ref().is_err_and(|error| !may_be_corruption(error)), Ordering::Relaxed);
            match (content, hash.join()) {
                (_, Err(_)) => Err(Stopped::by(DeployError::Fault { stage: "hash" }, None)),
                (Ok(content), Ok(Some(served))) => Ok((served, content)),
                (Ok(_), Ok(None)) => Err(Stopped::by(DeployError::Abandoned, None)),
                (Err(error), Ok(served)) => Err(Stopped::by(error, served)),
            }
        })
    }

    /// Fills blocks with decoded bytes.
    fn decode(
        &self,
        pieces: Receiver<Item>,
        empty: &Receiver<AlignedBuffer>,
        hand_over: impl Fn(Block) -> bool,
    ) -> Result<(), DeployError> {
        let mut pieces = PieceReader::new(pieces);
        let mut head = Vec::new();
        let peeked = pieces.by_ref().take(HEAD as u64).read_to_end(&mut head);
        peeked.map_err(|error| broken(Format::Raw, 0, &error))?;
        let format = Format::of(&head)?;
        let known = if format == Format::Raw { self.total } else { declared_size(format, &head)? };
        let size = self.device.size();
        if let Some(image) = known.filter(|image| *image > size) {
            return Err(DeployError::TooLarge { disk: self.device.name().to_owned(), size, image });
        }
        let mut decoder = decoder(format, Cursor::new(head).chain(&mut pieces), self.limits)
            .map_err(|error| broken(format, 0, &error))?;
        let mut offset = 0;
        // No more buffers come when every writer has failed.
        while let Ok(mut buffer) = empty.recv() {
            let len = fill(&mut *decoder, &mut buffer).map_err(|error| broken(format, offset, &error))?;
            buffer[len..].fill(0);
            let whole = len == buffer.len();
            if len > 0 && !hand_over(Block { buffer, offset, len }) {
                break;
            }
            offset += len as u64;
            if !whole {
                break;
            }
        }
        Ok(())
    }

    fn place(
        &self,
        blocks: &Receiver<Block>,
        writers: &Writers<'_>,
        give_back: &Sender<AlignedBuffer>,
    ) -> Result<Content, DeployError> {
        let mut placement = Placement::new(&**self.device, self.hashing, self.grow);
        let mut writing = false;
        let mut zeros = Run::default();
        let write = |job| writers.write(job).then_some(()).ok_or(DeployError::Abandoned);
        while let Ok(block) = blocks.recv() {
            let Placed::Write(block) = placement.place(block)? else { continue };
            if !writing {
                (self.before_first_write)()?;
                writing = true;
            }
            let run = if is_zero(&block.buffer[..block.len]) {
                let run = zeros.extend(block.offset, block.len as u64);
                // Nobody fills buffers any more once the decoder is done.
                let _ = give_back.send(block.buffer);
                run
            } else {
                write(Job::Block(block))?;
                zeros.end()
            };
            run.map(Job::Zeros).map_or(Ok(()), write)?;
        }
        zeros.end().map(Job::Zeros).map_or(Ok(()), write)?;
        placement.finish()
    }
}

/// Whether the served bytes may be to blame, so that their digest is worth the rest of the download.
fn may_be_corruption(error: &DeployError) -> bool {
    matches!(
        error,
        DeployError::Decode { .. }
            | DeployError::Layout { .. }
            | DeployError::Table { source: TableError::Damaged { .. }, .. }
    )
}

/// Hashes what comes and passes it on, for as long as there is somebody to take it. [`None`] when the feed breaks
/// off or `stop` is set.
fn hash(
    mut feed: UnboundedReceiver<Item>,
    to_decoder: Sender<Item>,
    progress: &Progress,
    stop: &AtomicBool,
) -> Option<Served> {
    let mut hash = Sha256::new();
    let mut bytes = 0;
    let mut to_decoder = Some(to_decoder);
    while !stop.load(Ordering::Relaxed) {
        let item = feed.blocking_recv()?;
        let end = match &item {
            Item::Piece(piece) => {
                hash.update(&piece.bytes);
                bytes += piece.bytes.len() as u64;
                progress.add(piece.bytes.len() as u64);
                false
            }
            Item::End => true,
        };
        if to_decoder.as_ref().is_some_and(|decoder| decoder.send(item).is_err()) {
            to_decoder = None;
        }
        if end {
            return Some(Served { digest: Digest::from_bytes(hash.finalize().into()), bytes });
        }
    }
    None
}

/// Reads until the buffer is full or the reader ends; how much there was.
fn fill(reader: &mut dyn Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut len = 0;
    while len < buffer.len() {
        match reader.read(&mut buffer[len..]) {
            Ok(0) => break,
            Ok(n) => len += n,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(len)
}
