//! One installation, from the order to a disk that boots, or to one that does not.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use farrier_shared::contract::Digest;
use farrier_shared::contract::options::{Grow, Verify};
use tokio::sync::{mpsc::UnboundedReceiver, oneshot};

use super::decode::Limits;
use super::feed::{Feed, Item, feed};
use super::fetch::Download;
use super::finish::{commit, lay, read_back};
use super::partitions::{Named, settle, show};
use super::pipeline::{Served, Stages};
use super::place::{Content, Hashing};
use super::{DeployError, ImageClient, Progress, Source, Step, Timing};
use crate::disk::io::forget_cache;
use crate::disk::wipe::{clear, log_found, wipe};
use crate::disk::{Access, BlockDevice, Target};
use crate::seed::Seed;

/// Largest image that [`Verify::Auto`] reads back, in bytes.
const AUTO_READ_BACK: u64 = 8 << 30;

/// What to install.
#[derive(Clone, Debug)]
pub struct Order {
    /// Where the image is.
    pub source: Source,
    /// Digest of the served bytes.
    pub digest: Digest,
    /// Digest of the decoded bytes, when the operator gave one (`farrier.content-digest`).
    pub content_digest: Option<Digest>,
    /// Reading back.
    pub verify: Verify,
    /// What becomes of the room behind the image (`farrier.grow`).
    pub grow: Grow,
}

/// What was installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Bytes served.
    pub served: u64,
    /// Bytes of the disk image.
    pub written: u64,
    /// Whether the whole medium was read back.
    pub read_back: bool,
}

/// Installs the image on the target and plants the seed.
///
/// On any failure after the first write both ends of the disk are wiped, so that it does not boot. Dropping the
/// future gives up, and returns once the disk is wiped, or after [`Timing::stop`]; a disk that only answers after that
/// is wiped then.
///
/// # Errors
/// What failed first; [`DeployError::NotWiped`] when the disk could not be made unbootable on top of it.
pub async fn install(
    client: &ImageClient,
    order: &Order,
    target: Arc<dyn Target>,
    seed: Arc<dyn Seed>,
    progress: Arc<Progress>,
) -> Result<Outcome, DeployError> {
    let mut download = client.download(&order.source);
    // The first bytes are waited for here, since the stages want to know the length.
    let first = download.next().await?;
    progress.begin(Step::Writing, download.total);
    let (feed, items) = feed();
    let (done, mut result) = oneshot::channel();
    let (seen, was_seen) = channel();
    let work = Work {
        order: order.clone(),
        host: order.source.hosts(),
        total: download.total,
        timing: client.timing.clone(),
        target,
        seed,
        progress,
        began: AtomicBool::new(false),
        device: Mutex::new(None),
        seen: Mutex::new(was_seen),
    };
    let (ends, ended) = channel();
    thread::Builder::new()
        .name("deploy".to_owned())
        .spawn(move || {
            work.run(items, done);
            drop(ends);
        })
        .map_err(|_| DeployError::Fault { stage: "deploy" })?;
    let waits = WaitOnDrop { seen: Some(seen), ended, wait: client.timing.stop };
    let fetched = {
        let fetch = pump(&mut download, first, feed);
        tokio::pin!(fetch);
        tokio::select! {
            fetched = &mut fetch => fetched,
            early = &mut result => return waits.acknowledge(early),
        }
    };
    let received = result.await;
    let result = waits.acknowledge(received);
    match (fetched, result) {
        (Err(cause), Err(DeployError::Abandoned)) => Err(cause),
        (Err(cause), Err(DeployError::NotWiped { disk, cause: abandoned, wipe }))
            if matches!(*abandoned, DeployError::Abandoned) =>
        {
            Err(DeployError::NotWiped { disk, cause: Box::new(cause), wipe })
        }
        (_, result) => result,
    }
}

/// Feeds the stages until the image ends, it breaks off, or they take no more.
async fn pump(download: &mut Download, first: Option<bytes::Bytes>, feed: Feed) -> Result<(), DeployError> {
    let mut next = first;
    while let Some(bytes) = next {
        if feed.send(bytes).await.is_err() {
            return Ok(());
        }
        next = download.next().await?;
    }
    feed.end();
    Ok(())
}

/// Waits for the thread, which holds the other ends for as long as it runs: whoever drops the future must not power
/// off before the disk is wiped.
struct WaitOnDrop {
    /// Gone without a word when the future was given up.
    seen: Option<Sender<()>>,
    ended: Receiver<()>,
    wait: Duration,
}

impl WaitOnDrop {
    /// Takes the thread's result, and has the thread know that it was taken.
    fn acknowledge(
        &self,
        result: Result<Result<Outcome, DeployError>, oneshot::error::RecvError>,
    ) -> Result<Outcome, DeployError> {
        if let Some(seen) = &self.seen {
            // A thread that failed does not ask.
            let _ = seen.send(());
        }
        result.unwrap_or(Err(DeployError::Fault { stage: "deploy" }))
    }
}

impl Drop for WaitOnDrop {
    fn drop(&mut self) {
        drop(self.seen.take());
        if self.ended.recv_timeout(self.wait) == Err(RecvTimeoutError::Timeout) {
            tracing::error!("the installation did not stop in {:?}; its disk does not answer", self.wait);
        }
    }
}

/// What the deploy thread does.
struct Work {
    order: Order,
    host: String,
    total: Option<u64>,
    timing: Timing,
    target: Arc<dyn Target>,
    seed: Arc<dyn Seed>,
    progress: Arc<Progress>,
    /// Whether anything on the disk was touched.
    began: AtomicBool,
    device: Mutex<Option<Arc<dyn BlockDevice>>>,
    /// Hears that the result was taken, or that nobody will.
    seen: Mutex<Receiver<()>>,
}

impl Work {
    fn run(self, items: UnboundedReceiver<Item>, done: oneshot::Sender<Result<Outcome, DeployError>>) {
        let tried = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.steps(items)));
        let result = tried.unwrap_or(Err(DeployError::Fault { stage: "deploy" }));
        let result = match result {
            Err(cause) if self.began.load(Ordering::SeqCst) => Err(self.make_unbootable(cause)),
            result => result,
        };
        let installed = result.is_ok();
        // Whether it was taken is for the answer to say.
        let _ = done.send(result);
        if installed && self.lock(&self.seen).recv().is_err() {
            // Whoever gave up has told of a failure, and a host that failed must not come up.
            let cause = self.make_unbootable(DeployError::Abandoned);
            tracing::warn!(disk = self.target.name(), %cause, "the run ended before the installation did");
        }
    }

    fn lock<'a, T>(&self, mutex: &'a Mutex<T>) -> std::sync::MutexGuard<'a, T> {
        mutex.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether anybody still waits for the outcome. A disk may hang for longer than the run does.
    fn check_wanted(&self) -> Result<(), DeployError> {
        match self.lock(&self.seen).try_recv() {
            Err(TryRecvError::Disconnected) => Err(DeployError::Abandoned),
            Ok(()) | Err(TryRecvError::Empty) => Ok(()),
        }
    }

    fn steps(&self, items: UnboundedReceiver<Item>) -> Result<Outcome, DeployError> {
        let device = self.open()?;
        let begin = || self.begin(&*device);
        let stages = Stages {
            device: &device,
            total: self.total,
            progress: &self.progress,
            limits: Limits::of_machine(),
            hashing: Hashing {
                digest: self.order.content_digest.is_some(),
                checksum: self.order.verify != Verify::Off,
            },
            grow: self.order.grow,
            before_first_write: &begin,
        };
        let (served, mut content) = stages.run(items).map_err(|stopped| {
            // Corruption shows as all sorts of errors; the digest names it.
            stopped.served.and_then(|served| self.check_digest(&served).err()).unwrap_or(stopped.error)
        })?;
        self.check_digest(&served)?;
        if let (Some(expected), Some(got)) = (self.order.content_digest, content.digest)
            && expected != got
        {
            return Err(DeployError::ContentMismatch { expected, got, bytes: content.length });
        }
        begin()?;
        let read_back = self.read_back(&*device, &content)?;
        self.check_wanted()?;
        self.progress.begin(Step::Partitioning, None);
        let marks = lay(&*device, &mut content)?;
        let partitions = content.table.partitions(&*device)?;
        show(&*self.target, &*device, &partitions, &self.timing)?;
        // The kernel mounts no partition of a disk that is held exclusively.
        *self.lock(&self.device) = None;
        drop(device);
        self.check_wanted()?;
        self.progress.begin(Step::Seeding, None);
        self.seed.plant(&Named { target: &*self.target, partitions: &partitions })?;
        let device = self.open()?;
        self.check_wanted()?;
        // Only now, so that a power cut leaves nothing that boots without its seed, or with half of it.
        commit(&*device, &marks)?;
        settle(&*self.target, &*device, &partitions, &self.timing)?;
        *self.lock(&self.device) = None;
        self.progress.begin(Step::Done, None);
        Ok(Outcome { served: served.bytes, written: content.length, read_back })
    }

    fn open(&self) -> Result<Arc<dyn BlockDevice>, DeployError> {
        let device = self.target.open(Access::Exclusive)?;
        *self.lock(&self.device) = Some(Arc::clone(&device));
        Ok(device)
    }

    /// Everything checkable has been checked: what was on the disk goes.
    fn begin(&self, device: &dyn BlockDevice) -> Result<(), DeployError> {
        if !self.began.load(Ordering::SeqCst) {
            log_found(device);
            self.began.store(true, Ordering::SeqCst);
            clear(device)?;
        }
        Ok(())
    }

    fn check_digest(&self, served: &Served) -> Result<(), DeployError> {
        if served.digest == self.order.digest {
            return Ok(());
        }
        Err(DeployError::DigestMismatch {
            expected: self.order.digest,
            got: served.digest,
            bytes: served.bytes,
            host: self.host.clone(),
        })
    }

    /// Has everything on the medium, and reads it back where that is wanted; whether it was.
    fn read_back(&self, device: &dyn BlockDevice, content: &Content) -> Result<bool, DeployError> {
        self.progress.begin(Step::Flushing, None);
        forget_cache(device)?;
        let wanted = self.order.verify == Verify::ReadBack || content.length <= AUTO_READ_BACK;
        // There is no checksum with `Verify::Off`.
        let checksum = content.checksum.filter(|_| wanted);
        if let Some(checksum) = checksum {
            read_back(device, content, checksum, &self.progress)?;
        }
        Ok(checksum.is_some())
    }

    /// Wipes both ends after a failure, and has the kernel forget the partitions.
    fn make_unbootable(&self, cause: DeployError) -> DeployError {
        let held = self.lock(&self.device).take();
        let opened = match held {
            Some(device) => Ok(device),
            // A mount that would not go must not keep a failed disk bootable.
            None => self.target.open(Access::Exclusive).or_else(|_| self.target.open(Access::Forced)),
        };
        let wiped = opened.and_then(|device| {
            wipe(&*device)?;
            // The kernel's view is of no consequence: this system is about to end.
            let _ = device.reread_partitions();
            Ok(())
        });
        match wiped {
            Ok(()) => cause,
            Err(wipe) => {
                DeployError::NotWiped { disk: self.target.name().to_owned(), cause: Box::new(cause), wipe }
            }
        }
    }
}
