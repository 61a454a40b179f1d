//! Where installed systems report that they are up.

use std::net::{Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use tokio::net::TcpListener;
use tokio::sync::watch;

/// What was reported so far.
#[derive(Clone, Debug)]
pub struct Greetings {
    received: watch::Receiver<Vec<String>>,
}

impl Greetings {
    /// Listens at `port` of every address of the room.
    ///
    /// # Errors
    /// When the port is taken.
    pub(super) async fn serve(port: u16) -> Result<Self> {
        // Takes IPv4 as well.
        let address = SocketAddr::from((Ipv6Addr::UNSPECIFIED, port));
        let (publish, received) = watch::channel(Vec::new());
        let listener = TcpListener::bind(address).await.with_context(|| format!("listen on {address}"))?;
        let router = Router::new().route("/up", post(take)).with_state(Arc::new(publish));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Ok(Self { received })
    }

    /// Every report so far.
    pub fn all(&self) -> Vec<String> {
        self.received.borrow().clone()
    }

    /// Waits for the first report.
    ///
    /// # Errors
    /// When none comes within `limit`.
    pub async fn first(&self, limit: Duration) -> Result<String> {
        let mut received = self.received.clone();
        let waited = tokio::time::timeout(limit, received.wait_for(|all| !all.is_empty())).await;
        let all = waited
            .with_context(|| format!("no installed system reported within {} s", limit.as_secs()))?
            .context("the listener is gone")?;
        Ok(all[0].clone())
    }
}

async fn take(State(publish): State<Arc<watch::Sender<Vec<String>>>>, body: String) -> StatusCode {
    publish.send_modify(|all| all.push(body));
    StatusCode::NO_CONTENT
}
