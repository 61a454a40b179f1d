//! Several writes to the disk under way at once, from a fixed pool of blocks.

use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Scope, ScopedJoinHandle};

use super::{DeployError, Progress};
use crate::disk::{AlignedBuffer, BlockDevice, DiskError, write_all};

/// Size of a block.
pub(super) const BLOCK: usize = 1 << 20;
/// Blocks in all: three may be withheld, each writer has one, the others wait or are being filled.
const POOL: usize = 20;
/// Writes under way at once.
const WRITERS: usize = 4;

/// A block of the image on its way to the disk.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) buffer: AlignedBuffer,
    /// Place on the disk, in bytes.
    pub(super) offset: u64,
    /// Bytes of the image in the buffer; the rest is zeros.
    pub(super) len: usize,
}

/// Empty buffers come from here, and go back when their block is written.
pub(super) struct Pool {
    pub(super) empty: Receiver<AlignedBuffer>,
    pub(super) give_back: Sender<AlignedBuffer>,
}

impl Pool {
    pub(super) fn new() -> Self {
        let (give_back, empty) = channel();
        for _ in 0..POOL {
            // The other end is right here.
            let _ = give_back.send(AlignedBuffer::zeroed(BLOCK));
        }
        Self { empty, give_back }
    }
}

/// The writers' end.
pub(super) struct Writers<'scope> {
    queue: SyncSender<Block>,
    threads: Vec<ScopedJoinHandle<'scope, Result<(), DiskError>>>,
}

impl<'scope> Writers<'scope> {
    /// Starts them.
    pub(super) fn start<'env>(
        scope: &'scope Scope<'scope, 'env>,
        device: &Arc<dyn BlockDevice>,
        give_back: &Sender<AlignedBuffer>,
        progress: &'env Progress,
    ) -> Self {
        let (queue, blocks) = sync_channel::<Block>(WRITERS);
        let blocks = Arc::new(Mutex::new(blocks));
        let threads = (0..WRITERS)
            .map(|_| {
                let (device, blocks, give_back) =
                    (Arc::clone(device), Arc::clone(&blocks), give_back.clone());
                scope.spawn(move || {
                    loop {
                        let next = blocks.lock().unwrap_or_else(PoisonError::into_inner).recv();
                        let Ok(block) = next else { return Ok(()) };
                        let sector = device.logical_sector() as usize;
                        let whole = block.len.next_multiple_of(sector);
                        write_all(&*device, &block.buffer[..whole], block.offset)?;
                        progress.wrote(whole as u64);
                        // Nobody fills buffers any more once the decoder is done.
                        let _ = give_back.send(block.buffer);
                    }
                })
            })
            .collect();
        Self { queue, threads }
    }

    /// Hands a block over. `false` when every writer has failed; [`finish`](Self::finish) tells why.
    pub(super) fn write(&self, block: Block) -> bool {
        self.queue.send(block).is_ok() && !self.threads.iter().any(ScopedJoinHandle::is_finished)
    }

    /// Waits for everything handed over.
    pub(super) fn finish(self) -> Result<(), DeployError> {
        drop(self.queue);
        let mut result = Ok(());
        for thread in self.threads {
            let one = thread.join().map_err(|_| DeployError::Fault { stage: "write" });
            result = result.and(one.and_then(|written| written.map_err(DeployError::from)));
        }
        result
    }
}
