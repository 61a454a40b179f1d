//! Several writes to the disk under way at once, from a fixed pool of blocks.

use std::ops::Range;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Scope, ScopedJoinHandle};

use super::zeros::Zeroing;
use super::{DeployError, Progress, stage};
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

/// What a writer does next.
pub(super) enum Job {
    Block(Block),
    /// Has these bytes of the disk be zeros.
    Zeros(Range<u64>),
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
    queue: SyncSender<Job>,
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
        let (queue, jobs) = sync_channel::<Job>(WRITERS);
        let jobs = Arc::new(Mutex::new(jobs));
        let zeroing = Arc::new(Zeroing::default());
        let threads = (0..WRITERS)
            .map(|_| {
                let (device, jobs, give_back) = (Arc::clone(device), Arc::clone(&jobs), give_back.clone());
                let zeroing = Arc::clone(&zeroing);
                scope.spawn(move || {
                    stage::named(c"write");
                    loop {
                        let next = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
                        let block = match next {
                            Ok(Job::Block(block)) => block,
                            Ok(Job::Zeros(range)) => {
                                let sector = u64::from(device.logical_sector());
                                let range = range.start..range.end.next_multiple_of(sector);
                                let len = range.end - range.start;
                                zeroing.zero(&*device, range)?;
                                progress.wrote(len);
                                continue;
                            }
                            Err(_) => return Ok(()),
                        };
                        let whole = block.len.next_multiple_of(device.logical_sector() as usize);
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

    /// Hands a job over. `false` when every writer has failed; [`finish`](Self::finish) tells why.
    pub(super) fn write(&self, job: Job) -> bool {
        self.queue.send(job).is_ok() && !self.threads.iter().any(ScopedJoinHandle::is_finished)
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
