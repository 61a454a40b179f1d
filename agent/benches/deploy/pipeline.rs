//! The agent's own pipeline, as a process.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use farrier_agent::deploy::{self, ImageClient, Order, Progress, Source};
use farrier_agent::disk::Target;
use farrier_agent::seed::{Seed, SeedError};
use farrier_shared::contract::options::{Grow, Verify};
use reqwest::dns::{Name, Resolve, Resolving};
use sha2::{Digest as _, Sha256};

use crate::target::PathTarget;

/// The server is named by its address.
struct NoNames;

impl Resolve for NoNames {
    fn resolve(&self, _: Name) -> Resolving {
        Box::pin(async { Err("the server is named by its address".into()) })
    }
}

/// No user-data.
struct NoSeed;

impl Seed for NoSeed {
    fn plant(&self, _: &dyn Target) -> Result<(), SeedError> {
        Ok(())
    }
}

pub(crate) fn install(url: &str, digest: &str, target: &Path, read_back: bool) -> Result<()> {
    rustls::crypto::ring::default_provider().install_default().ok();
    // As many threads as in the agent.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let order = Order {
        source: Source::new(url.parse().context("the URL")?),
        digest: digest.parse().context("the digest")?,
        content_digest: None,
        verify: if read_back { Verify::ReadBack } else { Verify::Off },
        grow: Grow::Off,
    };
    let client = ImageClient::new(Arc::new(NoNames))?;
    let target = Arc::new(PathTarget::new(target));
    let install = deploy::install(&client, &order, target, Arc::new(NoSeed), Arc::new(Progress::new()));
    runtime.block_on(Box::pin(install)).map_err(|error| anyhow::anyhow!(error.reason()))?;
    Ok(())
}

pub(crate) fn sha256(file: &Path) -> Result<String> {
    let mut file = File::open(file)?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(format!("sha256:{}", hex::encode(hash.finalize()))),
            n => hash.update(&buffer[..n]),
        }
    }
}
