//! The narrow trait between the store and what keeps its documents.
//!
//! Everything handlers and reconcilers do is expressed in get, compare-and-swap, delete and watch, so that the
//! Kubernetes API can stand here as well as SQLite. Finalizers, uids and timestamps are the store's business,
//! not the backend's.

use farrier_shared::contract::{HostKey, Name};
use farrier_shared::lifecycle::credentials::Credentials;
use farrier_shared::lifecycle::history::HistoryEntry;
use farrier_shared::lifecycle::signal::Signal;
use futures_util::future::BoxFuture;
use tokio::sync::broadcast;
use zeroize::Zeroizing;

use super::StoreError;

/// Answer of a backend, some time later.
pub type Answer<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

/// One stored object.
#[derive(Clone)]
pub struct Document {
    /// Kind.
    pub kind: &'static str,
    /// Namespace and name.
    pub key: HostKey,
    /// Identity of this incarnation.
    pub uid: String,
    /// Opaque version; empty on the way in of a create.
    pub version: String,
    /// JSON text without version; may hold secrets.
    pub body: Zeroizing<String>,
    /// What it can be found by ([`Term`](super::Term)), sorted; empty on the way out.
    pub terms: Vec<String>,
}

impl std::fmt::Debug for Document {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Document({} {} at {})", self.kind, self.key, self.version)
    }
}

/// Where to look for documents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// In every namespace.
    Everywhere,
    /// In one namespace, after this name.
    Namespace {
        /// The namespace.
        namespace: Name,
        /// Only names that sort after this one.
        after: Option<Name>,
    },
}

/// Something changed; read it to learn what.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Change {
    /// Kind of the changed object; `PhysicalHost` for a host's signals and credentials.
    pub kind: String,
    /// Its namespace and name.
    pub key: HostKey,
}

/// A record and the version to compare when replacing it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Versioned<T> {
    /// Opaque version.
    pub version: String,
    /// The record.
    pub value: T,
}

/// Keeps documents and per-host records. A write that returned `Ok` is durable.
pub trait Backend: Send + Sync + 'static {
    /// The document, if there is one.
    fn get(&self, kind: &'static str, key: &HostKey) -> Answer<'_, Option<Document>>;
    /// Documents of a kind, of one namespace or of all, sorted by key: at most `limit` of those after `after`.
    fn list(
        &self,
        kind: &'static str,
        namespace: Option<&Name>,
        after: Option<&HostKey>,
        limit: usize,
    ) -> Answer<'_, Vec<Document>>;
    /// The keys of a kind, sorted.
    fn keys(&self, kind: &'static str) -> Answer<'_, Vec<HostKey>>;
    /// Documents of a kind that have this term, sorted by key: at most `limit` of those that come after
    /// `after`. Its cost follows the number found, not the number stored.
    fn find(&self, kind: &'static str, term: String, scope: Scope, limit: usize)
    -> Answer<'_, Vec<Document>>;
    /// Adds a document and gives its version; `AlreadyExists` when there is one.
    fn create(&self, document: Document) -> Answer<'_, String>;
    /// Replaces the document of this uid and version and gives the new version; `Conflict` when another was
    /// found, `NotFound` when none. A host's log gets `history` along with it: both or neither.
    fn swap(&self, document: Document, history: Vec<HistoryEntry>) -> Answer<'_, String>;
    /// Removes the document of this uid and version, a host's records with it; `Conflict` and `NotFound` as
    /// for [`swap`](Backend::swap).
    fn remove(&self, document: Document) -> Answer<'_, ()>;
    /// Every later change. A receiver that falls behind is told so and must read everything again.
    fn watch(&self) -> broadcast::Receiver<Change>;

    /// A host's credentials.
    fn credentials(&self, host: &HostKey) -> Answer<'_, Option<Versioned<Credentials>>>;
    /// Replaces a host's credentials if `expected` is their version (`None`: if there are none).
    fn put_credentials(
        &self,
        host: &HostKey,
        new: &Credentials,
        expected: Option<&str>,
    ) -> Answer<'_, Versioned<Credentials>>;
    /// A host's waiting signals, sorted by key.
    fn signals(&self, host: &HostKey) -> Answer<'_, Vec<Signal>>;
    /// Leaves a signal, in place of a waiting one of the same key.
    fn put_signal(&self, host: &HostKey, signal: &Signal) -> Answer<'_, ()>;
    /// Removes exactly this signal; one that was replaced meanwhile stays.
    fn remove_signal(&self, host: &HostKey, signal: &Signal) -> Answer<'_, ()>;
    /// Adds to a host's log, which keeps the newest [`HISTORY_LIMIT`] entries.
    fn append_history(&self, host: &HostKey, entry: &HistoryEntry) -> Answer<'_, ()>;
    /// A host's log, oldest first.
    fn history(&self, host: &HostKey) -> Answer<'_, Vec<HistoryEntry>>;
}

/// Entries kept of each host's log.
pub const HISTORY_LIMIT: usize = 100;
