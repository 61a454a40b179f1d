//! Accepting connections: plain or TLS, HTTP/1.1 only, each wait with a limit, so many at a time.
//!
//! Strangers reach these sockets. A peer that opens connections and stays silent costs one slot until a
//! timeout, never a task for ever.

mod shares;

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::ConnectInfo;
use axum::http::HeaderValue;
use axum::http::header::CONNECTION;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_io_timeout::TimeoutStream;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tower::{Service as _, ServiceExt as _};

pub use shares::Shares;

/// Limits of one listener.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Longest wait for a TLS handshake.
    pub handshake: Duration,
    /// Longest wait for the head of a request, the idle time before it included.
    pub head: Duration,
    /// Longest a write may stand still. Reading is limited elsewhere: a head by `head`, a body by its handler. A
    /// limit on reads here would also cut every answer that takes longer, since a peer that only reads is silent.
    pub stall: Duration,
    /// Connections served at a time; further ones wait in the kernel's backlog. Once half of them are open, or half of
    /// the client's own share, each answer closes its connection: one that waits for its client's next request holds a
    /// place that a client with a request has need of, and ten thousand agents each keep one while they install.
    pub connections: usize,
    /// How long open connections may go on once the listener stops.
    pub drain: Duration,
}

impl Limits {
    /// For callbacks and boot scripts: short exchanges.
    pub const CALLBACKS: Self = Self {
        handshake: Duration::from_secs(10),
        head: Duration::from_secs(15),
        stall: Duration::from_secs(15),
        connections: 4096,
        drain: Duration::from_secs(30),
    };
    /// For images: long answers to clients that may pause while a disk catches up. OS images take half
    /// of the connections at most, so that firmware always finds one for its script and kernel.
    pub const IMAGES: Self = Self {
        stall: Duration::from_secs(120),
        connections: 2048,
        drain: Duration::from_secs(5),
        ..Self::CALLBACKS
    };
    /// For the admin API: watches stay open, and are cut when the controller stops.
    pub const ADMIN: Self = Self {
        stall: Duration::from_secs(3600),
        head: Duration::from_secs(60),
        connections: 128,
        drain: Duration::from_secs(1),
        ..Self::CALLBACKS
    };
}

/// Serves `router` on a TCP socket until `stop`; over TLS when `tls` is given. Handlers find the peer in
/// [`ConnectInfo`]. A connection beyond its address' share is closed at once.
pub async fn serve_tcp(
    listener: TcpListener,
    tls: Option<Arc<ServerConfig>>,
    router: Router,
    limits: Limits,
    shares: Shares,
    stop: CancellationToken,
) {
    let slots = Slots::new(limits.connections);
    let open = GracefulShutdown::new();
    loop {
        let Some(slot) = slots.take(&stop).await else { break };
        let (socket, peer) = tokio::select! {
            () = stop.cancelled() => break,
            accepted = listener.accept() => match accepted {
                Ok(accepted) => accepted,
                Err(error) => { pause_after(&error).await; continue; }
            },
        };
        let Some(share) = shares.take(peer.ip()) else {
            tracing::debug!(%peer, "connection closed: its address has too many open");
            continue;
        };
        // Answers are small and complete; waiting to fill a segment only delays them.
        let _ = socket.set_nodelay(true);
        let (router, watcher, tls, slots) = (router.clone(), open.watcher(), tls.clone(), slots.clone());
        let share = Arc::new(share);
        tokio::spawn(async move {
            let _places = (slot, Arc::clone(&share));
            let crowded = move || slots.crowded() || share.crowded();
            match tls {
                None => exchange(socket, router, peer, limits, crowded, watcher).await,
                Some(config) => {
                    let handshake = TlsAcceptor::from(config).accept(socket);
                    match tokio::time::timeout(limits.handshake, handshake).await {
                        Ok(Ok(stream)) => exchange(stream, router, peer, limits, crowded, watcher).await,
                        Ok(Err(error)) => tracing::debug!(%peer, %error, "TLS handshake failed"),
                        Err(_) => tracing::debug!(%peer, "TLS handshake timed out"),
                    }
                }
            }
        });
    }
    drain(open, limits).await;
}

/// Serves `router` on a unix socket until `stop`. The peer is whoever may open the socket's file.
pub async fn serve_unix(listener: UnixListener, router: Router, limits: Limits, stop: CancellationToken) {
    let slots = Slots::new(limits.connections);
    let open = GracefulShutdown::new();
    let local = SocketAddr::from(([127, 0, 0, 1], 0));
    loop {
        let Some(slot) = slots.take(&stop).await else { break };
        let socket = tokio::select! {
            () = stop.cancelled() => break,
            accepted = listener.accept() => match accepted {
                Ok((socket, _)) => socket,
                Err(error) => { pause_after(&error).await; continue; }
            },
        };
        let (router, watcher, slots) = (router.clone(), open.watcher(), slots.clone());
        tokio::spawn(async move {
            let _slot = slot;
            exchange(socket, router, local, limits, move || slots.crowded(), watcher).await;
        });
    }
    drain(open, limits).await;
}

/// Places for a listener's connections.
#[derive(Clone, Debug)]
struct Slots {
    free: Arc<Semaphore>,
    all: usize,
}

impl Slots {
    fn new(all: usize) -> Self {
        Self { free: Arc::new(Semaphore::new(all)), all }
    }

    /// A place, once there is one; [`None`] once the listener stops.
    async fn take(&self, stop: &CancellationToken) -> Option<OwnedSemaphorePermit> {
        tokio::select! {
            () = stop.cancelled() => None,
            permit = Arc::clone(&self.free).acquire_owned() => permit.ok(),
        }
    }

    /// Whether half of them are taken, so that none is to be held without need.
    fn crowded(&self) -> bool {
        // One is held ready for the next connection.
        self.free.available_permits() + 1 < self.all.div_ceil(2)
    }
}

/// Out of file descriptors, most likely: closing connections frees some, retrying at once only spins.
async fn pause_after(error: &io::Error) {
    tracing::warn!(%error, "cannot accept a connection");
    tokio::time::sleep(Duration::from_millis(200)).await;
}

async fn drain(open: GracefulShutdown, limits: Limits) {
    let _ = tokio::time::timeout(limits.drain, open.shutdown()).await;
}

async fn exchange<S>(
    stream: S,
    router: Router,
    peer: SocketAddr,
    limits: Limits,
    crowded: impl Fn() -> bool + Clone + Send + 'static,
    watcher: hyper_util::server::graceful::Watcher,
) where
    S: AsyncRead + AsyncWrite + Send + 'static,
{
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(limits.stall));
    let service = tower::service_fn(move |mut request: hyper::Request<hyper::body::Incoming>| {
        request.extensions_mut().insert(ConnectInfo(peer));
        let (mut router, crowded) = (router.clone(), crowded.clone());
        async move {
            let mut answer =
                router.as_service::<hyper::body::Incoming>().ready().await?.call(request).await?;
            if crowded() {
                answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            Ok::<_, Infallible>(answer)
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head)
        .max_buf_size(64 << 10)
        .serve_connection(TokioIo::new(Box::pin(stream)), TowerToHyperService::new(service));
    if let Err(error) = watcher.watch(connection).await {
        tracing::debug!(%peer, %error, "connection ended early");
    }
}

#[cfg(test)]
mod tests;
