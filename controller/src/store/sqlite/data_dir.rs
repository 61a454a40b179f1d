//! The data directory: private, and used by one controller at a time.

use std::fs::{DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use crate::store::StoreError;

/// Mode bit of a directory in which everybody may make files of their own.
const STICKY: u32 = 0o1000;

/// A data directory held by this process; free again when dropped, or when the process ends in any way.
#[derive(Debug)]
pub(super) struct DataDir {
    /// The database in it.
    pub(super) database: PathBuf,
    // The kernel's lock lives as long as this descriptor.
    _lock: File,
}

impl DataDir {
    /// Makes the directory (0700) and the database file (0600) when they are missing, narrows their permissions
    /// when they are wide, and takes the lock.
    pub(super) fn take(dir: &Path) -> Result<Self, StoreError> {
        let fail = |action, path: &Path| {
            let path = path.to_owned();
            move |source| StoreError::DataDir { action, path, source }
        };
        DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(fail("create", dir))?;
        let mode = std::fs::metadata(dir).map_err(fail("look at", dir))?.permissions().mode();
        if mode & STICKY != 0 {
            // Such as /tmp: closing it to all others would break the machine.
            let shared = std::io::Error::other("it is shared by all users of this machine");
            return Err(fail("use", dir)(shared));
        }
        std::fs::set_permissions(dir, Permissions::from_mode(0o700))
            .map_err(fail("restrict access to", dir))?;
        let lock_path = dir.join("farrier.lock");
        let mut lock = open_private(&lock_path).map_err(fail("open", &lock_path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut owner = String::new();
                lock.read_to_string(&mut owner).ok();
                let owner = if owner.trim().is_empty() { "unknown" } else { owner.trim() };
                return Err(StoreError::InUse { path: dir.to_owned(), owner: owner.to_owned() });
            }
            Err(TryLockError::Error(source)) => return Err(fail("lock", &lock_path)(source)),
        }
        lock.set_len(0)
            .and_then(|()| writeln!(lock, "{}", std::process::id()))
            .map_err(fail("write", &lock_path))?;
        let database = dir.join("farrier.db");
        // SQLite gives its journal files the permissions of the database.
        open_private(&database).map_err(fail("open", &database))?;
        Ok(Self { database, _lock: lock })
    }
}

impl Drop for DataDir {
    /// Brings everything into the database file, so that a copy of it alone is a backup. Every connection is closed
    /// by now, but those that closed last could only read, and left the journal beside it.
    fn drop(&mut self) {
        let settled = Connection::open(&self.database)
            .and_then(|db| db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())));
        if let Err(error) = settled {
            tracing::warn!(%error, "the journal farrier.db-wal stays; a backup needs it too");
        }
    }
}

fn open_private(path: &Path) -> std::io::Result<File> {
    let file =
        OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
    file.set_permissions(Permissions::from_mode(0o600))?;
    Ok(file)
}
