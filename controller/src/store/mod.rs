//! Where objects live: get, list, create, compare-and-swap, delete and watch over a [`Backend`].
//!
//! The store gives every backend the same semantics: uids and creation times, optimistic locking by
//! `resourceVersion`, finalizers, and writes that are durable before they are answered.

mod backend;
mod error;
mod sqlite;
mod term;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;

use farrier_shared::contract::{HostKey, Name, Time};
use farrier_shared::lifecycle::credentials::Credentials;
use farrier_shared::lifecycle::history::HistoryEntry;
use farrier_shared::lifecycle::signal::Signal;
use farrier_shared::resource::{PhysicalHost, Resource};
use tokio::sync::broadcast;
use zeroize::Zeroizing;

pub use backend::{Answer, Backend, Change, Document, HISTORY_LIMIT, Scope, Versioned};
pub use error::StoreError;
pub use term::Term;
pub(crate) use term::looks_for_host;

/// Some of the objects of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<R> {
    /// The objects, sorted by key.
    pub items: Vec<R>,
    /// After which key to go on; none when these were the last.
    pub next: Option<HostKey>,
}

/// The store; cheap to clone.
#[derive(Clone)]
pub struct Store {
    backend: Arc<dyn Backend>,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Store")
    }
}

impl Store {
    /// Opens `dir/farrier.db`, making directory (0700) and file (0600) as needed. Only one process may have a
    /// directory open.
    pub fn open(dir: &Path) -> Result<Self, StoreError> {
        Ok(Self::over(Arc::new(sqlite::Sqlite::open(dir)?)))
    }

    /// A store that ends with the process.
    pub fn in_memory() -> Result<Self, StoreError> {
        Ok(Self::over(Arc::new(sqlite::Sqlite::in_memory()?)))
    }

    /// A store over this backend.
    pub fn over(backend: Arc<dyn Backend>) -> Self {
        Self { backend }
    }

    /// The object, if there is one.
    pub async fn get<R: Resource>(&self, key: &HostKey) -> Result<Option<R>, StoreError> {
        self.backend.get(R::KIND, key).await?.as_ref().map(decode).transpose()
    }

    /// Every object of the kind, of one namespace or of all, sorted by key.
    ///
    /// One that cannot be read is left out and logged: it must not stop the work on all others.
    pub async fn list<R: Resource>(&self, namespace: Option<&Name>) -> Result<Vec<R>, StoreError> {
        Ok(self.page(namespace, None, usize::MAX).await?.items)
    }

    /// At most `limit` objects of the kind, those after `after`, as [`list`](Self::list) gives them: for who reads
    /// everything without having everything in memory.
    pub async fn page<R: Resource>(
        &self,
        namespace: Option<&Name>,
        after: Option<&HostKey>,
        limit: usize,
    ) -> Result<Page<R>, StoreError> {
        let found = self.backend.list(R::KIND, namespace, after, limit).await?;
        let next = found.last().filter(|_| found.len() == limit).map(|last| last.key.clone());
        Ok(Page { items: found.iter().filter_map(readable).collect(), next })
    }

    /// The keys of every object of the kind, sorted: what there is, at a fraction of the cost of reading it.
    pub async fn keys<R: Resource>(&self) -> Result<Vec<HostKey>, StoreError> {
        self.backend.keys(R::KIND).await
    }

    /// Objects of the kind that have this term, sorted by key, at most `limit` of them; unreadable ones as in
    /// [`list`](Self::list). The cost follows what is found, however much is stored.
    pub async fn find<R: Resource>(
        &self,
        term: Term<'_>,
        scope: Scope,
        limit: usize,
    ) -> Result<Vec<R>, StoreError> {
        let found = self.backend.find(R::KIND, term.to_string(), scope, limit).await?;
        Ok(found.iter().filter_map(readable).collect())
    }

    /// Adds an object. Sets uid, resourceVersion and creationTimestamp; `AlreadyExists` when the name is taken.
    pub async fn create<R: Resource>(&self, mut object: R) -> Result<R, StoreError> {
        let metadata = object.metadata_mut();
        metadata.uid = uuid::Uuid::new_v4().to_string();
        metadata.creation_timestamp = Some(now());
        metadata.deletion_timestamp = None;
        let version = self.backend.create(encode(&object)?).await?;
        object.metadata_mut().resource_version = version;
        Ok(object)
    }

    /// Replaces an object that is still at the resourceVersion it was read at. `Conflict` when somebody wrote
    /// since, `NotFound` when it is gone. Uid and timestamps of the stored object are kept.
    ///
    /// An object under deletion whose finalizers are all gone is removed. A write that changes nothing keeps
    /// the version and tells no watcher.
    pub async fn update<R: Resource>(&self, object: &R) -> Result<R, StoreError> {
        self.replace(object, Vec::new()).await
    }

    /// Replaces a host as [`update`](Self::update) does and adds to its log in the same step, so that no crash
    /// leaves a change without its entry. An update that changes nothing logs nothing.
    pub async fn update_host(
        &self,
        host: &PhysicalHost,
        history: Vec<HistoryEntry>,
    ) -> Result<PhysicalHost, StoreError> {
        self.replace(host, history).await
    }

    async fn replace<R: Resource>(&self, object: &R, history: Vec<HistoryEntry>) -> Result<R, StoreError> {
        let key = object.metadata().key();
        let stored = self.backend.get(R::KIND, &key).await?;
        let stored = stored.ok_or(StoreError::NotFound { kind: R::KIND, key: key.clone() })?;
        let given = object.metadata();
        let other_incarnation = !given.uid.is_empty() && given.uid != stored.uid;
        if given.resource_version != stored.version || other_incarnation {
            return Err(StoreError::Conflict { kind: R::KIND, key });
        }
        let old: R = decode(&stored)?;
        let mut new = object.clone();
        let metadata = new.metadata_mut();
        metadata.uid.clone_from(&stored.uid);
        metadata.creation_timestamp = old.metadata().creation_timestamp;
        metadata.deletion_timestamp = old.metadata().deletion_timestamp;
        let last_finalizer_gone = metadata.deletion_timestamp.is_some() && metadata.finalizers.is_empty();
        let mut document = encode(&new)?;
        document.version.clone_from(&stored.version);
        if last_finalizer_gone {
            self.backend.remove(document).await?;
        } else if document.body != stored.body {
            new.metadata_mut().resource_version = self.backend.swap(document, history).await?;
        }
        Ok(new)
    }

    /// Asks for an object to go: at once when nobody holds it, else when its last finalizer is gone. A host's
    /// credentials, signals and history go with it.
    pub async fn delete<R: Resource>(&self, key: &HostKey) -> Result<(), StoreError> {
        loop {
            let stored = self.backend.get(R::KIND, key).await?;
            let stored = stored.ok_or(StoreError::NotFound { kind: R::KIND, key: key.clone() })?;
            let mut object: R = decode(&stored)?;
            let done = if object.metadata().finalizers.is_empty() {
                self.backend.remove(stored).await
            } else if object.metadata().deletion_timestamp.is_some() {
                return Ok(());
            } else {
                object.metadata_mut().deletion_timestamp = Some(now());
                let mut document = encode(&object)?;
                document.version = stored.version;
                self.backend.swap(document, Vec::new()).await.map(drop)
            };
            match done {
                // Each conflict means that somebody else got a write through, so this ends.
                Err(StoreError::Conflict { .. }) => {}
                other => return other,
            }
        }
    }

    /// Every later change. A receiver that lags must read everything again.
    pub fn watch(&self) -> broadcast::Receiver<Change> {
        self.backend.watch()
    }

    /// A host's credentials, with the version to compare when replacing them.
    pub async fn credentials(&self, host: &HostKey) -> Result<Option<Versioned<Credentials>>, StoreError> {
        self.backend.credentials(host).await
    }

    /// Replaces a host's credentials if their version is `expected` (`None`: if there are none yet); else
    /// `Conflict`. `NotFound` when there is no such host.
    pub async fn put_credentials(
        &self,
        host: &HostKey,
        new: &Credentials,
        expected: Option<&str>,
    ) -> Result<Versioned<Credentials>, StoreError> {
        self.backend.put_credentials(host, new, expected).await
    }

    /// A host's waiting signals.
    pub async fn signals(&self, host: &HostKey) -> Result<Vec<Signal>, StoreError> {
        self.backend.signals(host).await
    }

    /// Leaves a signal for a host, in place of one of the same key. `NotFound` when there is no such host.
    pub async fn put_signal(&self, host: &HostKey, signal: &Signal) -> Result<(), StoreError> {
        self.backend.put_signal(host, signal).await
    }

    /// Removes exactly this signal: one with another value, binding or report was put since and stays.
    pub async fn remove_signal(&self, host: &HostKey, signal: &Signal) -> Result<(), StoreError> {
        self.backend.remove_signal(host, signal).await
    }

    /// Adds to a host's log, which keeps the newest [`HISTORY_LIMIT`] entries. `NotFound` when there is no
    /// such host.
    pub async fn append_history(&self, host: &HostKey, entry: &HistoryEntry) -> Result<(), StoreError> {
        self.backend.append_history(host, entry).await
    }

    /// A host's log, oldest first.
    pub async fn history(&self, host: &HostKey) -> Result<Vec<HistoryEntry>, StoreError> {
        self.backend.history(host).await
    }
}

fn now() -> Time {
    Time::from_unix(jiff::Timestamp::now().as_second())
}

/// The document of an object, without its version: that is the backend's to give.
fn encode<R: Resource>(object: &R) -> Result<Document, StoreError> {
    let mut bare = object.clone();
    bare.metadata_mut().resource_version.clear();
    let key = object.metadata().key();
    let body = serde_json::to_string(&bare).map_err(|error| StoreError::Encoding {
        kind: R::KIND,
        key: key.clone(),
        action: "written to",
        reason: describe(&error),
    })?;
    Ok(Document {
        kind: R::KIND,
        key,
        uid: object.metadata().uid.clone(),
        version: String::new(),
        body: Zeroizing::new(body),
        terms: term::of(object),
    })
}

fn readable<R: Resource>(document: &Document) -> Option<R> {
    match decode(document) {
        Ok(object) => Some(object),
        Err(error) => {
            tracing::error!(%error, "left out of a list; delete the object, or repair it with the version that wrote it");
            None
        }
    }
}

fn decode<R: Resource>(document: &Document) -> Result<R, StoreError> {
    let mut object: R = serde_json::from_str(&document.body).map_err(|error| StoreError::Encoding {
        kind: document.kind,
        key: document.key.clone(),
        action: "read from",
        reason: describe(&error),
    })?;
    object.metadata_mut().resource_version.clone_from(&document.version);
    Ok(object)
}

/// Place and category of a JSON error; its own text may quote the input, which may be secret.
fn describe(error: &serde_json::Error) -> String {
    format!("{:?} error in its JSON at column {}", error.classify(), error.column())
}
