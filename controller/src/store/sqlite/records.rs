//! What is kept beside a host: credentials, waiting signals, history.

use farrier_shared::contract::HostKey;
use farrier_shared::lifecycle::credentials::Credentials;
use farrier_shared::lifecycle::history::HistoryEntry;
use farrier_shared::lifecycle::signal::Signal;
use farrier_shared::resource::{PhysicalHost, Resource as _};
use rusqlite::{Connection, OptionalExtension as _, params};
use serde::Serialize;
use serde::de::DeserializeOwned;
use zeroize::Zeroizing;

use super::exists;
use crate::store::{HISTORY_LIMIT, StoreError, Versioned, describe};

const CREDENTIALS: &str = "Credentials";
const SIGNAL: &str = "Signal";
const HISTORY: &str = "HistoryEntry";

/// Records belong to a host that exists: what comes late for a deleted host leaves nothing behind.
pub(super) fn require_host(db: &Connection, host: &HostKey) -> Result<(), StoreError> {
    if exists(db, PhysicalHost::KIND, host)? {
        Ok(())
    } else {
        Err(StoreError::NotFound { kind: PhysicalHost::KIND, key: host.clone() })
    }
}

pub(super) fn remove_all(db: &Connection, host: &HostKey) -> Result<(), StoreError> {
    for sql in [
        "DELETE FROM credentials WHERE namespace = ?1 AND name = ?2",
        "DELETE FROM signals WHERE namespace = ?1 AND name = ?2",
        "DELETE FROM history WHERE namespace = ?1 AND name = ?2",
    ] {
        db.execute(sql, params![host.namespace.as_str(), host.name.as_str()])
            .map_err(|e| StoreError::backend("delete a host's records", e))?;
    }
    Ok(())
}

pub(super) fn credentials(
    db: &Connection,
    host: &HostKey,
) -> Result<Option<Versioned<Credentials>>, StoreError> {
    let row: Option<(i64, String)> = db
        .prepare_cached("SELECT version, body FROM credentials WHERE namespace = ?1 AND name = ?2")
        .and_then(|mut query| {
            query
                .query_row(params![host.namespace.as_str(), host.name.as_str()], |row| {
                    Ok((row.get(0)?, row.get(1)?))
                })
                .optional()
        })
        .map_err(|e| StoreError::backend("read credentials", e))?;
    row.map(|(version, body)| {
        let body = Zeroizing::new(body);
        Ok(Versioned { version: version.to_string(), value: parse(CREDENTIALS, host, &body)? })
    })
    .transpose()
}

pub(super) fn put_credentials(
    db: &Connection,
    host: &HostKey,
    new: &Credentials,
    version: i64,
    expected: Option<&str>,
) -> Result<(), StoreError> {
    let body = Zeroizing::new(text(CREDENTIALS, host, new)?);
    let (namespace, name) = (host.namespace.as_str(), host.name.as_str());
    let written = match expected {
        None => db.execute(
            "INSERT INTO credentials VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING",
            params![namespace, name, version, body.as_str()],
        ),
        Some(old) => db.execute(
            "UPDATE credentials SET version = ?3, body = ?4
             WHERE namespace = ?1 AND name = ?2 AND version = ?5",
            params![namespace, name, version, body.as_str(), super::parse_version(old)],
        ),
    };
    match written.map_err(|e| StoreError::backend("write credentials", e))? {
        0 => Err(StoreError::Conflict { kind: CREDENTIALS, key: host.clone() }),
        _ => Ok(()),
    }
}

pub(super) fn signals(db: &Connection, host: &HostKey) -> Result<Vec<Signal>, StoreError> {
    let bodies: Vec<String> =
        bodies(db, host, "SELECT body FROM signals WHERE namespace = ?1 AND name = ?2 ORDER BY key")
            .map_err(|e| StoreError::backend("read signals", e))?;
    Ok(readable(SIGNAL, host, &bodies))
}

pub(super) fn put_signal(db: &Connection, host: &HostKey, signal: &Signal) -> Result<(), StoreError> {
    db.prepare_cached("INSERT OR REPLACE INTO signals VALUES (?1, ?2, ?3, ?4)")
        .and_then(|mut insert| {
            insert.execute(params![
                host.namespace.as_str(),
                host.name.as_str(),
                signal.key.annotation(),
                text(SIGNAL, host, signal)
                    .map_err(|e| rusqlite::Error::ToSqlConversionFailure(Box::new(e)))?
            ])
        })
        .map(drop)
        .map_err(|e| StoreError::backend("write a signal", e))
}

/// Whether exactly this signal was there and is gone now. The same type wrote both texts, so equal signals have
/// equal text.
pub(super) fn remove_signal(db: &Connection, host: &HostKey, signal: &Signal) -> Result<bool, StoreError> {
    let body = text(SIGNAL, host, signal)?;
    db.prepare_cached("DELETE FROM signals WHERE namespace = ?1 AND name = ?2 AND key = ?3 AND body = ?4")
        .and_then(|mut delete| {
            delete.execute(params![
                host.namespace.as_str(),
                host.name.as_str(),
                signal.key.annotation(),
                body
            ])
        })
        .map(|removed| removed > 0)
        .map_err(|e| StoreError::backend("remove a signal", e))
}

pub(super) fn append_history(
    db: &Connection,
    host: &HostKey,
    entry: &HistoryEntry,
) -> Result<(), StoreError> {
    let body = text(HISTORY, host, entry)?;
    let (namespace, name) = (host.namespace.as_str(), host.name.as_str());
    let limit = i64::try_from(HISTORY_LIMIT).unwrap_or(i64::MAX);
    db.prepare_cached("INSERT INTO history (namespace, name, body) VALUES (?1, ?2, ?3)")
        .and_then(|mut insert| insert.execute(params![namespace, name, body]))
        .and_then(|_| {
            db.prepare_cached(
                "DELETE FROM history WHERE namespace = ?1 AND name = ?2 AND id <= (
                   SELECT id FROM history WHERE namespace = ?1 AND name = ?2
                   ORDER BY id DESC LIMIT 1 OFFSET ?3)",
            )?
            .execute(params![namespace, name, limit])
        })
        .map(drop)
        .map_err(|e| StoreError::backend("write history", e))
}

pub(super) fn history(db: &Connection, host: &HostKey) -> Result<Vec<HistoryEntry>, StoreError> {
    let bodies: Vec<String> =
        bodies(db, host, "SELECT body FROM history WHERE namespace = ?1 AND name = ?2 ORDER BY id")
            .map_err(|e| StoreError::backend("read history", e))?;
    Ok(readable(HISTORY, host, &bodies))
}

/// What can be read of several records. One that cannot, written by a newer version perhaps, must not hold its host up
/// for ever; it stays where it is.
fn readable<T: DeserializeOwned>(kind: &'static str, host: &HostKey, bodies: &[String]) -> Vec<T> {
    let read = |body: &String| match parse(kind, host, body) {
        Ok(record) => Some(record),
        Err(error) => {
            tracing::error!(%error, "left out");
            None
        }
    };
    bodies.iter().filter_map(read).collect()
}

fn bodies(db: &Connection, host: &HostKey, sql: &str) -> rusqlite::Result<Vec<String>> {
    db.prepare_cached(sql)?
        .query_map(params![host.namespace.as_str(), host.name.as_str()], |row| row.get(0))?
        .collect()
}

fn text<T: Serialize>(kind: &'static str, host: &HostKey, value: &T) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|error| StoreError::Encoding {
        kind,
        key: host.clone(),
        action: "written to",
        reason: describe(&error),
    })
}

fn parse<T: DeserializeOwned>(kind: &'static str, host: &HostKey, body: &str) -> Result<T, StoreError> {
    serde_json::from_str(body).map_err(|error| StoreError::Encoding {
        kind,
        key: host.clone(),
        action: "read from",
        reason: describe(&error),
    })
}
