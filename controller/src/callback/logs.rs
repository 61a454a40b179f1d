//! `POST /logs`: the agent's own log, kept for the operator.

use std::io::Write as _;
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use axum::body::Body;
use axum::extract::{ConnectInfo, State};
use axum::http::HeaderMap;
use axum::response::Response;
use farrier_shared::contract::HostKey;

use super::authenticate::HostPath;
use super::{Callbacks, MAX_LOGS_BODY, accepted, internal_error};

/// Bundles kept of each host: the newest as `<host>.log`, older ones as `<host>.log.1` and so on.
const KEPT: u32 = 4;

/// Keeps a bundle.
pub(super) async fn take(
    State(callbacks): State<Callbacks>,
    ConnectInfo(remote): ConnectInfo<SocketAddr>,
    path: HostPath,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let (caller, body) = match callbacks.admit(&path, &headers, remote, body, MAX_LOGS_BODY).await {
        Ok(admitted) => admitted,
        Err(refusal) => return *refusal,
    };
    let host = caller.host.metadata.key();
    let file = newest(&callbacks.logs_dir, &host);
    let written = tokio::task::spawn_blocking(move || keep(&file, &body)).await;
    match written.map_err(std::io::Error::other).flatten() {
        Ok(()) => {
            tracing::info!(%host, "agent log kept");
            accepted()
        }
        Err(error) => {
            tracing::error!(%host, %error, "agent log could not be kept; check space and permissions of the data directory");
            internal_error()
        }
    }
}

/// Where a host's newest bundle is. Names hold no slash and are never `..`, so this stays below `dir`.
fn newest(dir: &Path, host: &HostKey) -> PathBuf {
    dir.join(host.namespace.as_str()).join(format!("{}.log", host.name))
}

/// Removes what is kept of a host that is to go.
pub(crate) fn remove(dir: &Path, host: &HostKey) -> std::io::Result<()> {
    let file = newest(dir, host);
    for n in 0..KEPT {
        match std::fs::remove_file(numbered(&file, n)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// The newest bundle, or one that is older by so many.
fn numbered(newest: &Path, n: u32) -> PathBuf {
    match n {
        0 => newest.to_owned(),
        n => PathBuf::from(format!("{}.{n}", newest.display())),
    }
}

fn keep(file: &Path, body: &[u8]) -> std::io::Result<()> {
    let dir = file.parent().ok_or_else(|| std::io::Error::other("no folder to write to"))?;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let mut fresh =
        tempfile::Builder::new().permissions(std::fs::Permissions::from_mode(0o600)).tempfile_in(dir)?;
    fresh.write_all(body)?;
    fresh.as_file().sync_all()?;
    for n in (0..KEPT - 1).rev() {
        match std::fs::rename(numbered(file, n), numbered(file, n + 1)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    fresh.persist(file)?;
    // The new name is durable only with its folder.
    std::fs::File::open(dir)?.sync_all()
}
