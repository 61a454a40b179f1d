//! Tables and their version.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension as _};

use crate::store::StoreError;

/// Version this code writes and reads.
const VERSION: i64 = 1;

/// What leads from each version to the next; the first entry makes an empty database version 1.
const STEPS: [&str; 1] = ["
    CREATE TABLE meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT;
    INSERT INTO meta VALUES ('schema_version', 0), ('last_version', 0);
    CREATE TABLE documents (
        kind TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
        uid TEXT NOT NULL, version INTEGER NOT NULL, body TEXT NOT NULL,
        PRIMARY KEY (kind, namespace, name)
    ) STRICT;
    CREATE TABLE terms (
        kind TEXT NOT NULL, term TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
        PRIMARY KEY (kind, term, namespace, name)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX terms_of_object ON terms (kind, namespace, name);
    CREATE TABLE credentials (
        namespace TEXT NOT NULL, name TEXT NOT NULL, version INTEGER NOT NULL, body TEXT NOT NULL,
        PRIMARY KEY (namespace, name)
    ) STRICT;
    CREATE TABLE signals (
        namespace TEXT NOT NULL, name TEXT NOT NULL, key TEXT NOT NULL, body TEXT NOT NULL,
        PRIMARY KEY (namespace, name, key)
    ) STRICT;
    CREATE TABLE history (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        namespace TEXT NOT NULL, name TEXT NOT NULL, body TEXT NOT NULL
    ) STRICT;
    CREATE INDEX history_of_host ON history (namespace, name, id);
"];

/// Settings of a connection that writes to a file.
pub(super) fn configure_writer(db: &Connection) -> rusqlite::Result<()> {
    // FULL: a commit that was answered survives power loss, not only a crash of the process.
    db.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA busy_timeout = 10000;
         PRAGMA secure_delete = ON; PRAGMA wal_autocheckpoint = 1000;",
    )
}

/// Settings of a connection that only reads a file.
pub(super) fn configure_reader(db: &Connection) -> rusqlite::Result<()> {
    db.execute_batch("PRAGMA query_only = ON; PRAGMA busy_timeout = 10000;")
}

/// Brings the database to [`VERSION`]; refuses one that is newer.
pub(super) fn migrate(db: &mut Connection, path: &Path) -> Result<(), StoreError> {
    let fail = |e| StoreError::backend("prepare its database", e);
    let has_meta: bool = db
        .query_row("SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'meta'", [], |row| {
            row.get::<_, i64>(0)
        })
        .map_err(fail)?
        > 0;
    let found: i64 = if has_meta {
        db.query_row("SELECT value FROM meta WHERE key = 'schema_version'", [], |row| row.get(0))
            .optional()
            .map_err(fail)?
            .unwrap_or(0)
    } else {
        0
    };
    if found > VERSION {
        return Err(StoreError::NewerSchema { path: path.to_owned(), found, known: VERSION });
    }
    let done = usize::try_from(found).unwrap_or(0);
    let transaction = db.transaction().map_err(fail)?;
    for step in STEPS.iter().skip(done) {
        transaction.execute_batch(step).map_err(fail)?;
    }
    transaction
        .execute("UPDATE meta SET value = ?1 WHERE key = 'schema_version'", [VERSION])
        .map_err(fail)?;
    transaction.commit().map_err(fail)
}
