//! Bytes on their way from the network to the decoder: a queue bounded by bytes, not by pieces, with an end that
//! differs from a breaking off.

use std::io::{self, BufRead, Read};
use std::sync::Arc;

use bytes::{Buf as _, Bytes};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

/// Most bytes under way between network and decoder.
const BUDGET: u32 = 8 << 20;

/// One piece; its share of the budget comes back when it is dropped.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) bytes: Bytes,
    _share: OwnedSemaphorePermit,
}

/// What travels.
#[derive(Debug)]
pub(super) enum Item {
    Piece(Piece),
    /// All has come. A queue that closes without it broke off.
    End,
}

/// The network's end of the queue.
#[derive(Debug)]
pub(super) struct Feed {
    items: mpsc::UnboundedSender<Item>,
    budget: Arc<Semaphore>,
}

/// Nobody takes bytes any more.
#[derive(Debug)]
pub(super) struct Closed;

/// Both ends.
pub(super) fn feed() -> (Feed, mpsc::UnboundedReceiver<Item>) {
    let (items, receiver) = mpsc::unbounded_channel();
    (Feed { items, budget: Arc::new(Semaphore::new(BUDGET as usize)) }, receiver)
}

impl Feed {
    /// Hands over a piece, waiting for room.
    pub(super) async fn send(&self, bytes: Bytes) -> Result<(), Closed> {
        let share = u32::try_from(bytes.len()).unwrap_or(BUDGET).min(BUDGET);
        let room = Arc::clone(&self.budget).acquire_many_owned(share);
        // A stage that died keeps its pieces' shares until its queue is gone, so the closing is watched too.
        let share = tokio::select! {
            share = room => share.map_err(|_| Closed)?,
            () = self.items.closed() => return Err(Closed),
        };
        self.items.send(Item::Piece(Piece { bytes, _share: share })).map_err(|_| Closed)
    }

    /// Says that all has come.
    pub(super) fn end(self) {
        // A stage that is gone has its own error to tell.
        let _ = self.items.send(Item::End);
    }
}

/// Reads pieces as one stream.
#[derive(Debug)]
pub(super) struct PieceReader {
    items: std::sync::mpsc::Receiver<Item>,
    current: Option<Piece>,
    ended: bool,
}

impl PieceReader {
    pub(super) fn new(items: std::sync::mpsc::Receiver<Item>) -> Self {
        Self { items, current: None, ended: false }
    }
}

impl BufRead for PieceReader {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        while !self.ended && self.current.as_ref().is_none_or(|piece| piece.bytes.is_empty()) {
            self.current = None;
            match self.items.recv() {
                Ok(Item::Piece(piece)) => self.current = Some(piece),
                Ok(Item::End) => self.ended = true,
                Err(_) => return Err(io::Error::from(io::ErrorKind::ConnectionAborted)),
            }
        }
        Ok(self.current.as_ref().map_or(&[], |piece| &piece.bytes))
    }

    fn consume(&mut self, amount: usize) {
        if let Some(piece) = &mut self.current {
            piece.bytes.advance(amount);
        }
    }
}

impl Read for PieceReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let available = self.fill_buf()?;
        let n = available.len().min(buffer.len());
        buffer[..n].copy_from_slice(&available[..n]);
        self.consume(n);
        Ok(n)
    }
}
