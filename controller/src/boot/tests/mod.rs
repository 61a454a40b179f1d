//! What firmware and strangers get from `/boot` and `/ipxe`.

mod clients;
mod first_stage;
mod scripts;

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, StatusCode};
use farrier_shared::contract::BootNonce;
use farrier_shared::contract::cmdline::BootParams;
use farrier_shared::contract::options::{AgentOptions, OnFailure, Verify};
use farrier_shared::resource::{Beskar7Machine, HostState, PhysicalHost};
use futures_util::FutureExt as _;

use super::*;
use crate::fixture::{Answer, Fixture, ask, host, key};

struct FixedCa(&'static str);

impl CaBundle for FixedCa {
    fn pem(&self) -> Result<Vec<u8>, String> {
        if self.0.is_empty() { Err("no CA".to_owned()) } else { Ok(self.0.as_bytes().to_vec()) }
    }
}

/// Changes the host so many times when it is asked for the bundle: between the reading of the host and its writing.
struct MeddlingCa {
    store: Store,
    left: AtomicU32,
}

impl CaBundle for MeddlingCa {
    fn pem(&self) -> Result<Vec<u8>, String> {
        let left = self.left.load(Ordering::Relaxed);
        if left > 0 {
            self.left.store(left - 1, Ordering::Relaxed);
            // A store in memory answers at once.
            let host = self.store.get::<PhysicalHost>(&key("lab", "h1")).now_or_never().unwrap();
            let mut host = host.unwrap().unwrap();
            host.metadata.labels.insert("changes".to_owned(), left.to_string());
            self.store.update(&host).now_or_never().unwrap().unwrap();
        }
        Ok(b"PEM".to_vec())
    }
}

struct Rig {
    fixture: Fixture,
    router: Router,
}

const CLIENT: &str = "192.0.2.50";

impl Rig {
    async fn with(ca: &'static str, proxies: &str, reference_boot: bool) -> Self {
        let fixture = Fixture::in_state(HostState::Inspecting).await;
        Self::around(fixture, Arc::new(FixedCa(ca)), proxies, reference_boot)
    }

    fn around(fixture: Fixture, ca: Arc<dyn CaBundle>, proxies: &str, reference_boot: bool) -> Self {
        let boot = Boot {
            store: fixture.store.clone(),
            clock: Arc::new(fixture.clock.clone()),
            timings: Arc::default(),
            scripts: Arc::new(Renderer {
                ca,
                url_base: "https://192.0.2.1:8082".parse().unwrap(),
                reference_boot,
            }),
            proxies: Arc::new(proxies.parse().unwrap()),
            rate: Arc::default(),
        };
        Self { fixture, router: router(boot, "https://192.0.2.1:8082".parse().unwrap()) }
    }

    async fn new() -> Self {
        Self::with("PEM", "", false).await
    }

    async fn get(&self, client: &str, path: &str) -> Answer {
        // Each request on its own: the limit has a test of its own.
        self.fixture.clock.advance(Duration::from_secs(1));
        ask(&self.router, client, Request::builder().uri(path).body(Body::empty()).unwrap()).await
    }

    fn path(&self) -> String {
        farrier_shared::contract::paths::boot(&self.fixture.key, &self.fixture.nonce)
    }
}

fn not_found(answer: &Answer) -> bool {
    (answer.status, answer.body.as_slice()) == (StatusCode::NOT_FOUND, b"not found".as_slice())
}

#[tokio::test]
async fn logs_hold_neither_nonce_nor_token() {
    let (logs, guard) = crate::fixture::capture_logs();
    let rig = Rig::new().await;
    rig.get(CLIENT, "/ipxe/52:54:00:12:34:56").await;
    rig.get(CLIENT, &rig.path()).await;
    rig.get("192.0.2.51", &rig.path()).await;
    drop(guard);
    let logs = logs.text();
    assert!(logs.contains("boot script served") && logs.contains("boot script refused"), "{logs}");
    for secret in [rig.fixture.nonce.expose(), rig.fixture.token.expose()] {
        assert!(!logs.contains(secret), "{logs}");
    }
}
