//! How many long transfers may be under way at a time, so that short ones are never kept waiting for them.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// An answer longer than this is an OS image: kernel and initrd of the inspection image are below it, and firmware
/// that is refused them does not ask again.
const LONG: u64 = 64 << 20;

/// Long transfers at a time. With the listener's other places, as many again, firmware is served meanwhile.
const TRANSFERS: usize = 1024;

/// Room for transfers. Clones are one room.
#[derive(Clone, Debug)]
pub(super) struct Room {
    free: Arc<Semaphore>,
    long: u64,
}

impl Default for Room {
    fn default() -> Self {
        Self::new(TRANSFERS, LONG)
    }
}

/// A transfer's place: none is needed by a short one.
pub(super) type Place = Option<OwnedSemaphorePermit>;

/// There is no place now.
#[derive(Debug)]
pub(super) struct Full;

impl Room {
    pub(super) fn new(transfers: usize, long: u64) -> Self {
        Self { free: Arc::new(Semaphore::new(transfers)), long }
    }

    /// A place for a transfer of `len` bytes.
    pub(super) fn take(&self, len: u64) -> Result<Place, Full> {
        if len <= self.long {
            return Ok(None);
        }
        Arc::clone(&self.free).try_acquire_owned().map(Some).map_err(|_| Full)
    }
}

/// A reader that holds its place until it is dropped.
#[derive(Debug)]
pub(super) struct Placed<R> {
    reader: R,
    _place: Place,
}

impl<R> Placed<R> {
    pub(super) fn new(reader: R, place: Place) -> Self {
        Self { reader, _place: place }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Placed<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.reader).poll_read(cx, buf)
    }
}
