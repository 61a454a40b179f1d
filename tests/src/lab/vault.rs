//! The controller's own store, opened from outside to learn the secrets that must be found nowhere else, and to
//! age them.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use farrier_controller::store::Store;
use farrier_shared::contract::HostKey;
use farrier_shared::lifecycle::credentials::Credentials;

/// The credentials of a host, read from a copy of the data directory: the controller holds the original.
///
/// # Errors
/// When the host has none.
pub async fn credentials(data_dir: &Path, host: &str) -> Result<Credentials> {
    let mut tries = 0;
    loop {
        // Copied while it is written to, the database may be torn; then the next copy is not.
        match read_copy(data_dir, host).await {
            Ok(found) => return Ok(found),
            Err(error) if tries == 8 => return Err(error),
            Err(_) => tries += 1,
        }
        tokio::time::sleep(std::time::Duration::from_millis(250)).await;
    }
}

async fn read_copy(data_dir: &Path, host: &str) -> Result<Credentials> {
    let copy = tempfile::tempdir().context("make a scratch directory")?;
    for entry in fs::read_dir(data_dir)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default();
        if name.to_string_lossy().starts_with("farrier.db") {
            fs::copy(&path, copy.path().join(name))?;
        }
    }
    let store = Store::open(copy.path())?;
    let found = store.credentials(&key(host)?).await?;
    Ok(found.with_context(|| format!("host {host} has no credentials"))?.value)
}

/// Lets the nonce and the token of a host run out, as an hour's wait would. The controller must be down.
///
/// # Errors
/// When the controller is up, or the host has no credentials.
pub async fn age(data_dir: &Path, host: &str) -> Result<()> {
    let store = Store::open(data_dir)?;
    let key = key(host)?;
    let read = store.credentials(&key).await?.with_context(|| format!("host {host} has no credentials"))?;
    let mut aged = read.value;
    aged.token_expires_at = aged.token_issued_at;
    aged.nonce_expires_at = aged.token_issued_at;
    store.put_credentials(&key, &aged, Some(&read.version)).await?;
    Ok(())
}

fn key(host: &str) -> Result<HostKey> {
    Ok(HostKey::new("default".parse()?, host.parse()?))
}
