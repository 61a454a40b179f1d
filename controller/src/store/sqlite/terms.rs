//! What documents can be found by: one row for each term of each document.

use farrier_shared::contract::{HostKey, Name};
use rusqlite::{Connection, params};

use super::document;
use crate::store::{Document, Scope, StoreError};

/// Makes these the terms of a document. Most changes leave them as they are and then only read.
pub(super) fn set(db: &Connection, kind: &str, key: &HostKey, terms: &[String]) -> Result<(), StoreError> {
    replace(db, kind, key, terms).map_err(|e| StoreError::backend("write an object's terms", e))
}

fn replace(db: &Connection, kind: &str, key: &HostKey, terms: &[String]) -> rusqlite::Result<()> {
    let (namespace, name) = (key.namespace.as_str(), key.name.as_str());
    let present: Vec<String> = db
        .prepare_cached(
            "SELECT term FROM terms WHERE kind = ?1 AND namespace = ?2 AND name = ?3 ORDER BY term",
        )?
        .query_map(params![kind, namespace, name], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    if present == terms {
        return Ok(());
    }
    for old in present.iter().filter(|old| !terms.contains(old)) {
        db.prepare_cached(
            "DELETE FROM terms WHERE kind = ?1 AND term = ?2 AND namespace = ?3 AND name = ?4",
        )?
        .execute(params![kind, old, namespace, name])?;
    }
    for new in terms.iter().filter(|new| !present.contains(new)) {
        db.prepare_cached("INSERT INTO terms (kind, term, namespace, name) VALUES (?1, ?2, ?3, ?4)")?
            .execute(params![kind, new, namespace, name])?;
    }
    Ok(())
}

/// Documents with a term, as [`Backend::find`](crate::store::Backend::find) gives them.
pub(super) fn find(
    db: &Connection,
    kind: &'static str,
    term: &str,
    scope: &Scope,
    limit: usize,
) -> Result<Vec<Document>, StoreError> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let found = match scope {
        Scope::Everywhere => db
            .prepare_cached(
                "SELECT d.namespace, d.name, d.uid, d.version, d.body
                 FROM terms t JOIN documents d USING (kind, namespace, name)
                 WHERE t.kind = ?1 AND t.term = ?2 ORDER BY t.namespace, t.name LIMIT ?3",
            )
            .and_then(|mut query| {
                query.query_map(params![kind, term, limit], |row| document(kind, row))?.collect()
            }),
        // No name is empty, so all sort after it.
        Scope::Namespace { namespace, after } => db
            .prepare_cached(
                "SELECT d.namespace, d.name, d.uid, d.version, d.body
                 FROM terms t JOIN documents d USING (kind, namespace, name)
                 WHERE t.kind = ?1 AND t.term = ?2 AND t.namespace = ?3 AND t.name > ?4
                 ORDER BY t.name LIMIT ?5",
            )
            .and_then(|mut query| {
                let after = after.as_ref().map_or("", Name::as_str);
                let wanted = params![kind, term, namespace.as_str(), after, limit];
                query.query_map(wanted, |row| document(kind, row))?.collect()
            }),
    };
    found.map_err(|e| StoreError::backend("find objects", e))
}
