//! The embedded backend: one SQLite file that operators can open.

mod data_dir;
mod engine;
#[cfg(test)]
mod engine_tests;
mod records;
mod schema;
mod terms;

use std::path::Path;
use std::sync::Arc;

use farrier_shared::contract::{HostKey, Name};
use farrier_shared::lifecycle::credentials::Credentials;
use farrier_shared::lifecycle::history::HistoryEntry;
use farrier_shared::lifecycle::signal::Signal;
use farrier_shared::resource::{PhysicalHost, Resource as _};
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use tokio::sync::broadcast;
use zeroize::Zeroizing;

use super::{Answer, Backend, Change, Document, Scope, StoreError, Versioned};
use data_dir::DataDir;
use engine::{Engine, Written};

/// Documents and records in SQLite.
#[derive(Debug)]
pub(super) struct Sqlite {
    engine: Arc<Engine>,
}

impl Sqlite {
    pub(super) fn open(dir: &Path) -> Result<Self, StoreError> {
        Ok(Self { engine: Arc::new(Engine::open(DataDir::take(dir)?)?) })
    }

    pub(super) fn in_memory() -> Result<Self, StoreError> {
        Ok(Self { engine: Arc::new(Engine::in_memory()?) })
    }

    fn read<T, F>(&self, work: F) -> Answer<'_, T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    {
        Box::pin(engine::read(&self.engine, work))
    }

    fn look_up<'a, T, F>(&'a self, work: F) -> Answer<'a, T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, StoreError> + Send + 'a,
    {
        Box::pin(async move { self.engine.look_up(work) })
    }

    fn write<T, F>(&self, work: F) -> Answer<'_, T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Written<T> + Send + 'static,
    {
        Box::pin(self.engine.write(work))
    }
}

impl Backend for Sqlite {
    fn get(&self, kind: &'static str, key: &HostKey) -> Answer<'_, Option<Document>> {
        let key = key.clone();
        self.look_up(move |db| {
            db.prepare_cached(
                "SELECT namespace, name, uid, version, body FROM documents
                 WHERE kind = ?1 AND namespace = ?2 AND name = ?3",
            )
            .and_then(|mut query| {
                query
                    .query_row(params![kind, key.namespace.as_str(), key.name.as_str()], |row| {
                        document(kind, row)
                    })
                    .optional()
            })
            .map_err(|e| StoreError::backend("read an object", e))
        })
    }

    fn list(
        &self,
        kind: &'static str,
        namespace: Option<&Name>,
        after: Option<&HostKey>,
        limit: usize,
    ) -> Answer<'_, Vec<Document>> {
        let (namespace, after) = (namespace.cloned(), after.cloned());
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.read(move |db| {
            // No name is empty, so all sort after it.
            let (after_namespace, after) =
                after.as_ref().map_or(("", ""), |key| (key.namespace.as_str(), key.name.as_str()));
            let found = match &namespace {
                None => db
                    .prepare_cached(
                        "SELECT namespace, name, uid, version, body FROM documents
                         WHERE kind = ?1 AND (namespace, name) > (?2, ?3) ORDER BY namespace, name LIMIT ?4",
                    )
                    .and_then(|mut query| {
                        let wanted = params![kind, after_namespace, after, limit];
                        query.query_map(wanted, |row| document(kind, row))?.collect()
                    }),
                Some(namespace) => db
                    .prepare_cached(
                        "SELECT namespace, name, uid, version, body FROM documents
                         WHERE kind = ?1 AND namespace = ?2 AND name > ?3 ORDER BY name LIMIT ?4",
                    )
                    .and_then(|mut query| {
                        let wanted = params![kind, namespace.as_str(), after, limit];
                        query.query_map(wanted, |row| document(kind, row))?.collect()
                    }),
            };
            found.map_err(|e| StoreError::backend("list objects", e))
        })
    }

    fn keys(&self, kind: &'static str) -> Answer<'_, Vec<HostKey>> {
        self.read(move |db| {
            db.prepare_cached(
                "SELECT namespace, name FROM documents WHERE kind = ?1 ORDER BY namespace, name",
            )
            .and_then(|mut query| {
                query.query_map([kind], |row| Ok(HostKey::new(name(row, 0)?, name(row, 1)?)))?.collect()
            })
            .map_err(|e| StoreError::backend("list keys", e))
        })
    }

    fn find(
        &self,
        kind: &'static str,
        term: String,
        scope: Scope,
        limit: usize,
    ) -> Answer<'_, Vec<Document>> {
        self.read(move |db| terms::find(db, kind, &term, &scope, limit))
    }

    fn create(&self, new: Document) -> Answer<'_, String> {
        self.write(move |db| {
            let version = next_version(db)?;
            let added = db
                .prepare_cached(
                    "INSERT INTO documents VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT DO NOTHING",
                )
                .and_then(|mut insert| {
                    insert.execute(params![
                        new.kind,
                        new.key.namespace.as_str(),
                        new.key.name.as_str(),
                        new.uid,
                        version,
                        new.body.as_str()
                    ])
                })
                .map_err(|e| StoreError::backend("create an object", e))?;
            if added == 0 {
                return Err(StoreError::AlreadyExists { kind: new.kind, key: new.key });
            }
            terms::set(db, new.kind, &new.key, &new.terms)?;
            Ok((version.to_string(), Some(changed(new.kind, &new.key))))
        })
    }

    fn swap(&self, new: Document, history: Vec<HistoryEntry>) -> Answer<'_, String> {
        self.write(move |db| {
            let version = next_version(db)?;
            let replaced = db
                .prepare_cached(
                    "UPDATE documents SET version = ?1, body = ?2
                     WHERE kind = ?3 AND namespace = ?4 AND name = ?5 AND uid = ?6 AND version = ?7",
                )
                .and_then(|mut update| {
                    update.execute(params![
                        version,
                        new.body.as_str(),
                        new.kind,
                        new.key.namespace.as_str(),
                        new.key.name.as_str(),
                        new.uid,
                        parse_version(&new.version)
                    ])
                })
                .map_err(|e| StoreError::backend("update an object", e))?;
            if replaced == 0 {
                return Err(missed(db, new.kind, &new.key)?);
            }
            terms::set(db, new.kind, &new.key, &new.terms)?;
            history.iter().try_for_each(|entry| records::append_history(db, &new.key, entry))?;
            Ok((version.to_string(), Some(changed(new.kind, &new.key))))
        })
    }

    fn remove(&self, old: Document) -> Answer<'_, ()> {
        self.write(move |db| {
            let removed = db
                .prepare_cached(
                    "DELETE FROM documents
                     WHERE kind = ?1 AND namespace = ?2 AND name = ?3 AND uid = ?4 AND version = ?5",
                )
                .and_then(|mut delete| {
                    delete.execute(params![
                        old.kind,
                        old.key.namespace.as_str(),
                        old.key.name.as_str(),
                        old.uid,
                        parse_version(&old.version)
                    ])
                })
                .map_err(|e| StoreError::backend("delete an object", e))?;
            if removed == 0 {
                return Err(missed(db, old.kind, &old.key)?);
            }
            terms::set(db, old.kind, &old.key, &[])?;
            if old.kind == PhysicalHost::KIND {
                records::remove_all(db, &old.key)?;
            }
            Ok(((), Some(changed(old.kind, &old.key))))
        })
    }

    fn watch(&self) -> broadcast::Receiver<Change> {
        self.engine.watch()
    }

    fn credentials(&self, host: &HostKey) -> Answer<'_, Option<Versioned<Credentials>>> {
        let host = host.clone();
        self.look_up(move |db| records::credentials(db, &host))
    }

    fn put_credentials(
        &self,
        host: &HostKey,
        new: &Credentials,
        expected: Option<&str>,
    ) -> Answer<'_, Versioned<Credentials>> {
        let (host, new, expected) = (host.clone(), new.clone(), expected.map(str::to_owned));
        self.write(move |db| {
            records::require_host(db, &host)?;
            let version = next_version(db)?;
            records::put_credentials(db, &host, &new, version, expected.as_deref())?;
            Ok((Versioned { version: version.to_string(), value: new }, Some(host_changed(&host))))
        })
    }

    fn signals(&self, host: &HostKey) -> Answer<'_, Vec<Signal>> {
        let host = host.clone();
        self.look_up(move |db| records::signals(db, &host))
    }

    fn put_signal(&self, host: &HostKey, signal: &Signal) -> Answer<'_, ()> {
        let (host, signal) = (host.clone(), signal.clone());
        self.write(move |db| {
            records::require_host(db, &host)?;
            records::put_signal(db, &host, &signal)?;
            Ok(((), Some(host_changed(&host))))
        })
    }

    fn remove_signal(&self, host: &HostKey, signal: &Signal) -> Answer<'_, ()> {
        let (host, signal) = (host.clone(), signal.clone());
        self.write(move |db| {
            let removed = records::remove_signal(db, &host, &signal)?;
            Ok(((), removed.then(|| host_changed(&host))))
        })
    }

    fn append_history(&self, host: &HostKey, entry: &HistoryEntry) -> Answer<'_, ()> {
        let (host, entry) = (host.clone(), entry.clone());
        self.write(move |db| {
            records::require_host(db, &host)?;
            records::append_history(db, &host, &entry)?;
            // A log entry follows a change; it is none, and waking the host's worker for it would never end.
            Ok(((), None))
        })
    }

    fn history(&self, host: &HostKey) -> Answer<'_, Vec<HistoryEntry>> {
        let host = host.clone();
        self.read(move |db| records::history(db, &host))
    }
}

/// Versions are one rising number over all objects, so none ever comes back with a recreated object.
fn next_version(db: &Connection) -> Result<i64, StoreError> {
    db.prepare_cached("UPDATE meta SET value = value + 1 WHERE key = 'last_version' RETURNING value")
        .and_then(|mut update| update.query_row([], |row| row.get(0)))
        .map_err(|e| StoreError::backend("number a change", e))
}

/// A version as the column holds it; what is none equals none.
fn parse_version(text: &str) -> i64 {
    text.parse().unwrap_or(-1)
}

fn document(kind: &'static str, row: &Row<'_>) -> rusqlite::Result<Document> {
    Ok(Document {
        kind,
        key: HostKey::new(name(row, 0)?, name(row, 1)?),
        uid: row.get(2)?,
        version: row.get::<_, i64>(3)?.to_string(),
        body: Zeroizing::new(row.get(4)?),
        terms: Vec::new(),
    })
}

fn name(row: &Row<'_>, column: usize) -> rusqlite::Result<Name> {
    row.get::<_, String>(column)?.parse().map_err(|e| {
        rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, Box::new(e))
    })
}

/// Why a compare-and-swap found nothing.
fn missed(db: &Connection, kind: &'static str, key: &HostKey) -> Result<StoreError, StoreError> {
    let key = key.clone();
    Ok(if exists(db, kind, &key)? {
        StoreError::Conflict { kind, key }
    } else {
        StoreError::NotFound { kind, key }
    })
}

fn exists(db: &Connection, kind: &str, key: &HostKey) -> Result<bool, StoreError> {
    db.prepare_cached("SELECT 1 FROM documents WHERE kind = ?1 AND namespace = ?2 AND name = ?3")
        .and_then(|mut query| query.exists(params![kind, key.namespace.as_str(), key.name.as_str()]))
        .map_err(|e| StoreError::backend("look for an object", e))
}

fn changed(kind: &str, key: &HostKey) -> Change {
    Change { kind: kind.to_owned(), key: key.clone() }
}

fn host_changed(host: &HostKey) -> Change {
    changed(PhysicalHost::KIND, host)
}
