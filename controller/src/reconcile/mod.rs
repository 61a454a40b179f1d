//! The imperative shell around the lifecycle: gather what is known, let
//! [`farrier_shared::lifecycle`] decide, carry the decision out, look again when it says.
//!
//! Every object has a key, and every key has at most one pass at a time. A host's BMC has a key of its own, so a
//! BMC that does not answer holds up neither its host's callbacks nor any other host. Passes may be repeated and
//! may stop anywhere: the next one decides anew from the store.

mod bmc;
mod boot;
mod checksum;
mod clock_step;
mod free;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod host;
mod index;
mod machine;
mod memory;
mod queue;
mod release;
mod rooms;
#[cfg(test)]
mod tests;
mod user_data;
mod wake;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use farrier_shared::contract::{HostKey, Name, WebUrl};
use farrier_shared::lifecycle::Timings;
use farrier_shared::resource::{Beskar7Machine, PhysicalHost, Resource as _};
use tokio::sync::broadcast;
use tokio::task::{Id, JoinSet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::bmc::Connector;
use crate::boot::{Renderer, Unrendered};
use crate::clock::SharedClock;
use crate::progress::Progress;
use crate::store::{Change, Store, StoreError};
use clock_step::Listening;
use index::Index;
use memory::Memory;
use queue::{Laned, Queue};
use rooms::{Lane, Place, Rooms};

/// Hosts read at a time when everything is looked at.
const PAGE: usize = 256;
/// How long passes may take to end when the controller stops.
const STOPPING: Duration = Duration::from_secs(10);

/// What the reconcilers work with.
#[derive(Clone)]
pub struct Context {
    /// Where objects live.
    pub store: Store,
    /// What agents say of their progress.
    pub progress: Progress,
    /// Now.
    pub clock: SharedClock,
    /// All durations.
    pub timings: Arc<Timings>,
    /// Makes clients for BMCs.
    pub bmc: Arc<dyn Connector>,
    /// Base URL agents call.
    pub url_base: WebUrl,
    /// Makes the boot scripts that hosts are booted with.
    pub scripts: Arc<Renderer>,
    /// Folder of the agents' log bundles.
    pub logs_dir: PathBuf,
    /// Passes at the same time (`--max-concurrent-reconciles`); waiting for a BMC does not count.
    pub max_concurrent: usize,
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context").field("url_base", &self.url_base).finish_non_exhaustive()
    }
}

/// What a pass is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    Host(HostKey),
    /// Asking the host's BMC.
    Bmc(HostKey),
    Machine(HostKey),
    /// Who depends on this Secret.
    Secret(HostKey),
    /// Who waits for a free host in this namespace.
    Free(Name),
}

impl Laned for Key {
    fn lane(&self) -> Lane {
        match self {
            Self::Bmc(_) => Lane::Look,
            Self::Host(_) | Self::Machine(_) | Self::Secret(_) | Self::Free(_) => Lane::Pass,
        }
    }
}

/// What follows from a pass.
#[derive(Debug, Default)]
struct Next {
    /// When to look again if nothing wakes the key before.
    again: Option<Duration>,
    /// Whom to wake.
    wake: Vec<Key>,
    /// Whom to wake unless that happens anyway.
    ensure: Vec<Key>,
    /// Back off as after a failure, which was told already.
    failed: bool,
    /// Run it anew when there is room here: it came to something that there was none for.
    room: Option<Lane>,
}

/// Why a pass ended early.
#[derive(Debug, thiserror::Error)]
enum PassError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Bmc(#[from] bmc::AskError),
    #[error("{0}")]
    Other(String),
    #[error("{0}")]
    Ensure(#[from] farrier_shared::lifecycle::mint::EnsureError),
    #[error("no boot script can be made: {0}")]
    Script(#[from] Unrendered),
    #[error("the kernel gives no random numbers: {0}")]
    Random(getrandom::Error),
}

/// What one pass may use.
struct Shell {
    ctx: Context,
    memory: Memory,
    index: Index,
    listening: Listening,
    /// Read by passes while they read and decide; written by who changes what time it is.
    deciding: tokio::sync::RwLock<()>,
    rooms: Rooms,
}

/// Runs the reconcilers until `stop`. Passes under way get some seconds to end.
pub async fn run(ctx: Context, stop: CancellationToken) {
    Dispatcher::new(Arc::new(Shell::new(ctx))).run(stop).await;
}

/// Feeds the queue from changes, events and timers, and starts passes.
struct Dispatcher {
    shell: Arc<Shell>,
    queue: Queue<Key>,
    failures: HashMap<Key, u32>,
    running: HashMap<Id, Key>,
    tasks: JoinSet<Result<Next, PassError>>,
    /// When everything is to be read again, since it could not be read.
    reread: Option<Instant>,
}

impl Dispatcher {
    fn new(shell: Arc<Shell>) -> Self {
        Self {
            shell,
            queue: Queue::default(),
            failures: HashMap::new(),
            running: HashMap::new(),
            tasks: JoinSet::new(),
            reread: None,
        }
    }

    async fn run(&mut self, stop: CancellationToken) {
        // Watching first: what changes while everything is read is seen by one or the other.
        let mut changes = self.shell.ctx.store.watch();
        let mut events = self.shell.ctx.progress.subscribe();
        self.resync().await;
        let shell = Arc::clone(&self.shell);
        loop {
            shell.follow_clock().await;
            self.start_ready();
            let timer = self.queue.next_due();
            tokio::select! {
                () = stop.cancelled() => break,
                change = changes.recv() => match change {
                    Ok(change) => self.changed(change),
                    Err(broadcast::error::RecvError::Lagged(missed)) => {
                        tracing::warn!(missed, "changes came faster than they were read; reading everything");
                        self.resync().await;
                    }
                    Err(broadcast::error::RecvError::Closed) => break,
                },
                event = events.recv() => match event {
                    Ok(host) => self.progressed(&host),
                    // Progress missed moves a deadline a little later, at its next event.
                    Err(_) => tokio::task::yield_now().await,
                },
                Some(ended) = self.tasks.join_next_with_id() => self.ended(ended),
                () = shell.rooms.left() => {}
                () = sleep_until(timer) => self.queue.pass_timers(Instant::now()),
                () = sleep_until(self.reread) => self.resync().await,
                () = tokio::time::sleep(clock_step::LOOK) => {}
            }
        }
        let ended = tokio::time::timeout(STOPPING, async { while self.tasks.join_next().await.is_some() {} });
        if ended.await.is_err() {
            tracing::info!(passes = self.tasks.len(), "passes still waiting for BMCs are given up");
        }
    }

    /// Looks at everything, or tries to again soon: hosts that were never looked at would wait for ever.
    async fn resync(&mut self) {
        self.reread = None;
        if let Err(error) = self.look_at_everything().await {
            tracing::error!(%error, "the objects cannot be listed; trying again soon");
            self.reread = Some(Instant::now() + self.shell.ctx.timings.incomplete);
        }
    }

    async fn look_at_everything(&mut self) -> Result<(), StoreError> {
        let store = self.shell.ctx.store.clone();
        let mut after = None;
        loop {
            let page = store.page::<PhysicalHost>(None, after.as_ref(), PAGE).await?;
            for host in &page.items {
                self.shell.index.see(host);
                self.queue.wake(Key::Host(host.metadata.key()));
            }
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        self.shell.index.complete();
        store.keys::<Beskar7Machine>().await?.into_iter().for_each(|key| self.queue.wake(Key::Machine(key)));
        Ok(())
    }

    fn changed(&mut self, change: Change) {
        match change.kind.as_str() {
            PhysicalHost::KIND => self.queue.wake(Key::Host(change.key)),
            Beskar7Machine::KIND => self.queue.wake(Key::Machine(change.key)),
            _ => self.queue.wake(Key::Secret(change.key)),
        }
    }

    /// The first event of a run may bring its deadline nearer; later ones only move it away.
    fn progressed(&mut self, host: &HostKey) {
        let Some(entry) = self.shell.ctx.progress.get(host) else { return };
        if self.shell.memory.progressed(host, &entry) {
            self.queue.wake(Key::Host(host.clone()));
        }
    }

    fn start_ready(&mut self) {
        for lane in Lane::ALL {
            while self.queue.waits(lane)
                && let Some(place) = self.shell.rooms.enter(lane)
                && let Some(key) = self.queue.take(lane)
            {
                let shell = Arc::clone(&self.shell);
                let started = key.clone();
                let task = self.tasks.spawn(async move { shell.pass(&started, place).await });
                self.running.insert(task.id(), key);
            }
        }
    }

    fn ended(&mut self, ended: Result<(Id, Result<Next, PassError>), tokio::task::JoinError>) {
        let id = match &ended {
            Ok((id, _)) => *id,
            Err(error) => error.id(),
        };
        let Some(key) = self.running.remove(&id) else { return };
        let timings = Arc::clone(&self.shell.ctx.timings);
        let outcome = match ended {
            Ok((_, outcome)) => outcome,
            Err(error) => Err(PassError::Other(format!("the pass broke off: {error}"))),
        };
        let again = match outcome {
            Ok(next) => {
                next.wake.into_iter().for_each(|key| self.queue.wake(key));
                next.ensure.into_iter().for_each(|key| self.queue.ensure(key));
                if let Some(lane) = next.room {
                    return self.queue.moved(key, lane);
                }
                if next.failed {
                    Some(self.back_off(&key))
                } else {
                    self.failures.remove(&key);
                    next.again
                }
            }
            Err(PassError::Store(error)) if error.is_conflict() => {
                tracing::debug!(?key, %error, "starting anew");
                Some(timings.soon)
            }
            Err(error) => {
                let wait = self.back_off(&key);
                tracing::warn!(?key, %error, retry_in = ?wait, "a pass failed");
                Some(wait)
            }
        };
        self.queue.done(key, again.map(|wait| Instant::now() + wait));
    }

    fn back_off(&mut self, key: &Key) -> Duration {
        let failures = self.failures.entry(key.clone()).or_default();
        *failures = failures.saturating_add(1);
        self.shell.ctx.timings.backoff(*failures)
    }
}

impl Shell {
    fn new(ctx: Context) -> Self {
        Self {
            memory: Memory::default(),
            index: Index::default(),
            listening: Listening::since_now(ctx.clock.as_ref()),
            deciding: tokio::sync::RwLock::default(),
            rooms: Rooms::new(ctx.max_concurrent),
            ctx,
        }
    }

    async fn pass(&self, key: &Key, place: Place) -> Result<Next, PassError> {
        match key {
            Key::Host(host) => self.host_pass(host).await,
            Key::Bmc(host) => self.bmc_pass(host).await,
            Key::Machine(machine) => self.machine_pass(machine, place).await,
            Key::Secret(secret) => self.who_uses(secret).await,
            Key::Free(namespace) => self.who_waits(namespace).await,
        }
    }
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
