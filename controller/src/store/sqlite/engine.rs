//! Who touches the database: one writer that commits in groups, and separate readers.
//!
//! A commit with `synchronous=FULL` costs a flush of the disk. The writer takes every write that is waiting
//! into one transaction, so a thousand hosts that change at once share a flush. Each write stands on its own
//! savepoint: one that fails is undone alone. Nobody is answered before the commit.

use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;

use rusqlite::{Connection, OpenFlags};
use tokio::sync::{Semaphore, broadcast, oneshot};

use super::data_dir::DataDir;
use super::schema;
use crate::store::{Change, StoreError};

/// Most writes in one transaction; bounds how long the first of them waits.
const GROUP: usize = 512;
/// Changes a slow watcher may fall behind before it must read everything again.
const WATCH_BACKLOG: usize = 16_384;
/// Reads of many rows at a time. Each has a connection with a cache and a thread of its own, so a thousand at once would
/// cost a gigabyte. Rows found by their key are read beside them, at most one on each async thread.
const READERS: usize = 8;

/// What a write gives: its answer and the change to announce, if anything changed.
pub(super) type Written<T> = Result<(T, Option<Change>), StoreError>;

/// The database connections.
#[derive(Debug)]
pub(super) struct Engine {
    place: Place,
    changes: broadcast::Sender<Change>,
}

#[derive(Debug)]
enum Place {
    /// Work is done where it is asked for: it takes microseconds, and tests with a paused clock stay exact.
    Memory(Mutex<Connection>),
    File(File),
}

#[derive(Debug)]
struct File {
    jobs: Option<mpsc::Sender<Box<dyn Job>>>,
    writer: Option<JoinHandle<()>>,
    readers: Mutex<Vec<Connection>>,
    turns: Semaphore,
    /// Most connections kept for the next reads: one for each that may read at a time.
    kept: usize,
    path: PathBuf,
    // Last, so that the directory is free only when the writer has ended.
    _dir: DataDir,
}

impl Drop for File {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(writer) = self.writer.take() {
            writer.join().ok();
        }
    }
}

impl Engine {
    pub(super) fn in_memory() -> Result<Self, StoreError> {
        let mut db = Connection::open_in_memory().map_err(|e| StoreError::backend("open its database", e))?;
        schema::migrate(&mut db, ":memory:".as_ref())?;
        Ok(Self { place: Place::Memory(Mutex::new(db)), changes: broadcast::Sender::new(WATCH_BACKLOG) })
    }

    pub(super) fn open(dir: DataDir) -> Result<Self, StoreError> {
        let fail = |e| StoreError::backend("open its database", e);
        let path = dir.database.clone();
        let mut db = Connection::open(&path).map_err(fail)?;
        schema::configure_writer(&db).map_err(fail)?;
        schema::migrate(&mut db, &path)?;
        let changes = broadcast::Sender::new(WATCH_BACKLOG);
        let (jobs, queue) = mpsc::channel();
        let announce = changes.clone();
        let writer = std::thread::Builder::new()
            .name("store-writer".to_owned())
            .spawn(move || {
                // After a panic nothing it holds is used again.
                let work = AssertUnwindSafe(|| write_in_groups(&db, &queue, &announce));
                if catch_unwind(work).is_err() {
                    end_process();
                }
            })
            .map_err(|e| StoreError::backend("start its writer thread", e))?;
        let readers = Mutex::new(Vec::new());
        let turns = Semaphore::new(READERS);
        let kept = READERS + std::thread::available_parallelism().map_or(1, NonZero::get);
        let file = File { jobs: Some(jobs), writer: Some(writer), readers, turns, kept, path, _dir: dir };
        Ok(Self { place: Place::File(file), changes })
    }

    pub(super) fn watch(&self) -> broadcast::Receiver<Change> {
        self.changes.subscribe()
    }

    /// Does `work` in a transaction; the answer comes after the commit.
    pub(super) async fn write<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Written<T> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let job = Box::new(Write { work: Some(work), outcome: None, reply });
        match &self.place {
            Place::Memory(db) => {
                commit_group(&db.lock().unwrap_or_else(PoisonError::into_inner), vec![job], &self.changes);
            }
            Place::File(file) => {
                let sent = file.jobs.as_ref().is_some_and(|jobs| jobs.send(job).is_ok());
                if !sent {
                    return Err(StoreError::backend("write", "its writer thread has ended"));
                }
            }
        }
        answer.await.map_err(|_| StoreError::backend("write", "its writer thread has ended"))?
    }
}

impl Engine {
    /// Does `work` where it is asked for, on a connection of its own. For rows found by their key: they are read sooner
    /// than another thread has woken, and a fleet that is left alone costs little else than such reads.
    pub(super) fn look_up<T>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        match &self.place {
            Place::Memory(db) => work(&db.lock().unwrap_or_else(PoisonError::into_inner)),
            Place::File(file) => {
                let reader = file.reader()?;
                let answer = work(&reader);
                file.give_back(reader);
                answer
            }
        }
    }
}

/// Does `work` on a connection of its own, off the async threads when that takes a disk: it may read many rows.
pub(super) async fn read<T, F>(engine: &std::sync::Arc<Engine>, work: F) -> Result<T, StoreError>
where
    T: Send + 'static,
    F: FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
{
    let _turn = match &engine.place {
        Place::Memory(_) => return engine.look_up(work),
        // Never closed, so this only waits.
        Place::File(file) => file.turns.acquire().await.ok(),
    };
    let engine = std::sync::Arc::clone(engine);
    let task = tokio::task::spawn_blocking(move || engine.look_up(work));
    task.await.map_err(|e| StoreError::backend("read", e))?
}

/// Without its writer a controller would go on serving reads, and lose every host silently. What was acknowledged is
/// on disk; the next start goes on from there.
fn end_process() {
    tracing::error!("the store's writer failed, which is a bug; the controller ends, start it again");
    std::process::exit(1);
}

impl File {
    fn reader(&self) -> Result<Connection, StoreError> {
        if let Some(idle) = self.readers.lock().unwrap_or_else(PoisonError::into_inner).pop() {
            return Ok(idle);
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        Connection::open_with_flags(&self.path, flags)
            .and_then(|db| schema::configure_reader(&db).map(|()| db))
            .map_err(|e| StoreError::backend("open its database for reading", e))
    }

    fn give_back(&self, reader: Connection) {
        let mut idle = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < self.kept {
            idle.push(reader);
        }
    }
}

/// A queued write, whatever its answer's type.
trait Job: Send {
    /// Does the work; whether to keep what it wrote.
    fn run(&mut self, db: &Connection) -> bool;
    /// Answers, and announces the change if the transaction was committed.
    fn finish(self: Box<Self>, committed: Result<(), &str>, changes: &broadcast::Sender<Change>);
}

struct Write<T, F> {
    work: Option<F>,
    outcome: Option<Written<T>>,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

impl<T, F> Job for Write<T, F>
where
    T: Send,
    F: FnOnce(&Connection) -> Written<T> + Send,
{
    fn run(&mut self, db: &Connection) -> bool {
        self.outcome = self.work.take().map(|work| work(db));
        matches!(self.outcome, Some(Ok(_)))
    }

    fn finish(self: Box<Self>, committed: Result<(), &str>, changes: &broadcast::Sender<Change>) {
        let answer = match (committed, self.outcome) {
            // A write that failed changed nothing, whatever became of the transaction.
            (_, Some(Err(error))) => Err(error),
            (Ok(()), Some(Ok((answer, change)))) => {
                if let Some(change) = change {
                    // No receivers is no fault.
                    changes.send(change).ok();
                }
                Ok(answer)
            }
            (Err(reason), _) => Err(StoreError::backend("commit", reason)),
            (Ok(()), None) => Err(StoreError::backend("write", "the work was not done")),
        };
        // Who asked may have gone away; the write stands.
        self.reply.send(answer).ok();
    }
}

fn write_in_groups(
    db: &Connection,
    queue: &mpsc::Receiver<Box<dyn Job>>,
    changes: &broadcast::Sender<Change>,
) {
    while let Ok(first) = queue.recv() {
        let group = std::iter::once(first).chain(queue.try_iter().take(GROUP - 1)).collect();
        commit_group(db, group, changes);
    }
}

fn commit_group(db: &Connection, mut group: Vec<Box<dyn Job>>, changes: &broadcast::Sender<Change>) {
    let committed = db
        .execute_batch("BEGIN IMMEDIATE")
        .and_then(|()| group.iter_mut().try_for_each(|job| run_on_savepoint(db, job.as_mut())))
        .and_then(|()| db.execute_batch("COMMIT"))
        .map_err(|e| e.to_string());
    if committed.is_err() {
        db.execute_batch("ROLLBACK").ok();
    }
    for job in group {
        job.finish(committed.as_ref().copied().map_err(String::as_str), changes);
    }
}

fn run_on_savepoint(db: &Connection, job: &mut dyn Job) -> rusqlite::Result<()> {
    db.execute_batch("SAVEPOINT write")?;
    let keep = job.run(db);
    db.execute_batch(if keep { "RELEASE write" } else { "ROLLBACK TO write; RELEASE write" })
}
