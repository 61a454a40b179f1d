//! The whole pipeline against a hostile image server and a faulty disk: an image is installed, or nothing boots and
//! the reason is told.

mod disk;
mod faults;
mod hostile;
mod http2;
mod image;
mod mirrors;
mod power;
mod qcow2;
mod qemu;
mod server;
mod straight;

use std::sync::Arc;
use std::time::Duration;

use farrier_shared::contract::Digest;
use farrier_shared::contract::options::{Grow, Verify};
use reqwest::dns::{Name, Resolve, Resolving};
use sha2::{Digest as _, Sha256};

use self::disk::FileTarget;
use self::server::Server;
use super::{DeployError, ImageClient, Order, Outcome, Progress, Source, Timing, install};
use crate::disk::{DiskError, Target};
use crate::seed::{Seed, SeedError};

/// Tests name servers by address: a look-up is a bug.
struct NoNames;

impl Resolve for NoNames {
    fn resolve(&self, _: Name) -> Resolving {
        Box::pin(async { Err("no look-ups in tests".into()) })
    }
}

/// Patience in milliseconds.
fn client() -> ImageClient {
    rustls::crypto::ring::default_provider().install_default().ok();
    let timing = Timing {
        connect: Duration::from_secs(5),
        stall: Duration::from_millis(300),
        rate_window: Duration::from_millis(30),
        attempts: 4,
        give_up: Duration::from_millis(250),
        first_wait: Duration::from_millis(1),
        longest_wait: Duration::from_millis(4),
        longest_asked: Duration::from_millis(60),
        partitions: Duration::from_secs(2),
        partition_poll: Duration::from_millis(5),
        stop: Duration::from_secs(2),
    };
    ImageClient::with_timing(Arc::new(NoNames), timing).unwrap()
}

/// A seed that does as it is told.
struct TestSeed {
    fails: bool,
}

impl Seed for TestSeed {
    fn plant(&self, target: &dyn Target) -> Result<(), SeedError> {
        if self.fails {
            let disk = target.name().to_owned();
            return Err(SeedError::Disk(DiskError::Busy { disk }));
        }
        Ok(())
    }
}

fn sha256(bytes: &[u8]) -> Digest {
    Digest::from_bytes(Sha256::digest(bytes).into())
}

fn order(server: &Server, digest: Digest) -> Order {
    Order {
        source: Source::new(server.url()),
        digest,
        content_digest: None,
        verify: Verify::Auto,
        grow: Grow::Off,
    }
}

/// Installs what the server has, which `digest` names.
async fn run(server: &Server, digest: Digest, target: &Arc<FileTarget>) -> Result<Outcome, DeployError> {
    run_order(&order(server, digest), target, false).await
}

async fn run_order(
    order: &Order,
    target: &Arc<FileTarget>,
    seed_fails: bool,
) -> Result<Outcome, DeployError> {
    let target: Arc<dyn Target> = Arc::clone(target) as _;
    let seed = Arc::new(TestSeed { fails: seed_fails });
    let client = client();
    // A test that hangs is a finding too.
    let install = install(&client, order, target, seed, Arc::new(Progress::new()));
    tokio::time::timeout(Duration::from_secs(60), Box::pin(install)).await.expect("it ends")
}
