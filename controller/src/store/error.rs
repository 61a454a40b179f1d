//! Why a store operation failed.

use std::path::PathBuf;

use farrier_shared::contract::HostKey;

/// Why a store operation failed. No text of a stored object ever appears in here.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// No such object.
    #[error("{kind} {key} does not exist")]
    NotFound {
        /// Kind of the object.
        kind: &'static str,
        /// Its namespace and name.
        key: HostKey,
    },
    /// There is one already.
    #[error("{kind} {key} exists already")]
    AlreadyExists {
        /// Kind of the object.
        kind: &'static str,
        /// Its namespace and name.
        key: HostKey,
    },
    /// Somebody else wrote since the object was read: read again, decide again, write again.
    #[error("{kind} {key} was changed by somebody else since it was read; read it again and retry")]
    Conflict {
        /// Kind of the object.
        kind: &'static str,
        /// Its namespace and name.
        key: HostKey,
    },
    /// A stored object cannot be read or written as its type.
    #[error("{kind} {key} cannot be {action} the store: {reason}")]
    Encoding {
        /// Kind of the object.
        kind: &'static str,
        /// Its namespace and name.
        key: HostKey,
        /// `read from` or `written to`.
        action: &'static str,
        /// Where and of which category; never the text itself, which may be secret.
        reason: String,
    },
    /// The database failed.
    #[error("the store failed to {action}: {source}; {}", next_step(.source.as_ref()))]
    Backend {
        /// What was being done.
        action: &'static str,
        /// What the database said.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The data directory cannot be used.
    #[error("cannot {action} {path:?}: {source}; give --data-dir a directory this user can write")]
    DataDir {
        /// What was being done.
        action: &'static str,
        /// The path.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Another controller runs on the same data directory.
    #[error(
        "another farrier controller (process {owner}) is using {path:?}; stop it first, or give this one its own --data-dir"
    )]
    InUse {
        /// The data directory.
        path: PathBuf,
        /// Process id of the other one, `unknown` when it left none.
        owner: String,
    },
    /// The database was written by a newer version.
    #[error(
        "the database {path:?} has schema version {found}, this farrier knows up to {known}; run the newer farrier, or restore a backup made before the upgrade"
    )]
    NewerSchema {
        /// The database.
        path: PathBuf,
        /// Version found.
        found: i64,
        /// Newest version known.
        known: i64,
    },
}

/// What helps against a failure of the database: nothing but a backup helps a damaged file.
fn next_step(source: &(dyn std::error::Error + Send + Sync)) -> &'static str {
    let said = source.to_string();
    if said.contains("malformed") || said.contains("not a database") {
        "the file is damaged, so stop the controller and restore farrier.db and farrier.db-wal from a backup"
    } else {
        "check free space and permissions of the data directory"
    }
}

impl StoreError {
    /// A failure of the database while doing `action`.
    pub(crate) fn backend(
        action: &'static str,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self::Backend { action, source: source.into() }
    }

    /// Whether reading again and retrying is the answer.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Conflict { .. } | Self::AlreadyExists { .. })
    }
}
