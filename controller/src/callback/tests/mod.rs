//! What agents and strangers get from the callback listener, and what it leaves behind.

mod refusals;
mod reports;
mod user_data;

use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use farrier_shared::contract::binding::Bound;
use farrier_shared::contract::callback::EventName;
use farrier_shared::lifecycle::signal::SignalKey;
use farrier_shared::resource::{Beskar7Machine, HostState, Resource as _, Secret};
use sha2::{Digest as _, Sha256};

use super::*;
use crate::fixture::{Answer, Fixture, RUN, USER_DATA, ask, host, key};

struct Rig {
    fixture: Fixture,
    router: Router,
    progress: Progress,
    dir: tempfile::TempDir,
}

impl Rig {
    async fn in_state(state: HostState) -> Self {
        let fixture = Fixture::in_state(state).await;
        let (progress, dir) = (Progress::new(), tempfile::tempdir().unwrap());
        let callbacks = Callbacks {
            store: fixture.store.clone(),
            progress: progress.clone(),
            clock: Arc::new(fixture.clock.clone()),
            timings: Arc::default(),
            logs_dir: dir.path().join("logs"),
        };
        Self { fixture, router: router(callbacks), progress, dir }
    }

    async fn call(
        &self,
        method: &str,
        segment: &str,
        authorization: Option<&str>,
        body: impl Into<Body>,
    ) -> Answer {
        self.call_host(method, segment, "lab/h1", authorization, body).await
    }

    async fn call_host(
        &self,
        method: &str,
        segment: &str,
        host: &str,
        authorization: Option<&str>,
        body: impl Into<Body>,
    ) -> Answer {
        let mut request = Request::builder().method(method).uri(format!("/api/v1/{segment}/{host}"));
        if let Some(value) = authorization {
            request = request.header("authorization", value);
        }
        ask(&self.router, "192.0.2.50", request.body(body.into()).unwrap()).await
    }

    fn bearer(&self) -> String {
        format!("Bearer {}", self.fixture.token.expose())
    }

    async fn post(&self, segment: &str, body: impl Into<Body>) -> Answer {
        self.call("POST", segment, Some(&self.bearer()), body).await
    }

    async fn values(&self) -> Vec<(SignalKey, String)> {
        let signals = self.fixture.store.signals(&self.fixture.key).await.unwrap();
        signals.into_iter().map(|s| (s.key, s.value)).collect()
    }
}
