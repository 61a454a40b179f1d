//! `farrier serve`: every part wired together, started, and stopped in order.

mod settings;
mod upkeep;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub(crate) use settings::duration;
pub use settings::{LogFormat, Settings};

use crate::admin::{self, Admin, AdminError};
use crate::bmc::redfish::{ProxyError, RedfishConnector, parse_proxy};
use crate::boot::{self, Boot, RateLimit, Renderer};
use crate::callback::{self, Callbacks};
use crate::clock::SystemClock;
use crate::images;
use crate::listen::{Limits, Shares, serve_tcp, serve_unix};
use crate::progress::Progress;
use crate::reconcile;
use crate::store::{Store, StoreError};
use crate::tls::{ServingIdentity, ServingNames, TlsError, TlsFiles};

/// Why the controller does not start or does not go on.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The store cannot be opened.
    #[error("{0}")]
    Store(#[from] StoreError),
    /// There is no usable certificate.
    #[error("{0}")]
    Tls(#[from] TlsError),
    /// The admin API cannot be offered.
    #[error("{0}")]
    Admin(#[from] AdminError),
    /// The proxy for BMCs is none.
    #[error("{0}")]
    Proxy(#[from] ProxyError),
    /// A port cannot be listened on.
    #[error("cannot listen on {address} (--{flag}): {source}; stop what uses it, or choose another address")]
    Listen {
        /// The flag.
        flag: &'static str,
        /// Its value.
        address: SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
    /// A folder that must exist does not.
    #[error("--images-dir {path:?} is not a folder: {source}; create it, or leave the flag out")]
    ImagesDir {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A part broke off while the controller was running; the others were stopped.
    #[error("a part of the controller failed: {problem}; nothing acknowledged is lost, start it again")]
    Part {
        /// How.
        problem: String,
    },
}

/// Where a started controller listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// Callbacks and boot scripts, HTTPS.
    pub callbacks: SocketAddr,
    /// Images, plain HTTP.
    pub images: SocketAddr,
    /// Admin API on loopback TCP, when asked for.
    pub admin: Option<SocketAddr>,
}

/// Runs the controller until `stop`; `ready` is called once every listener is bound.
///
/// # Errors
/// When a part cannot be started or breaks off; nothing is left running then.
pub async fn run(
    settings: Settings,
    stop: CancellationToken,
    ready: impl FnOnce(&Addresses),
) -> Result<(), StartError> {
    allow_many_connections();
    leave_no_core();
    let clock = SystemClock::shared();
    let proxy = settings.bmc_proxy.as_ref().map(|text| parse_proxy(text.expose())).transpose()?;
    let store = Store::open(&settings.data_dir)?;
    let names = ServingNames::collect(&settings.url_base, &settings.tls_san, hostname().as_deref());
    let identity = ServingIdentity::open(TlsFiles::new(settings.data_dir.join("tls")), names, clock.now())?;
    let tls = identity.server_config()?;
    let images_dir = settings.images_dir();
    if settings.images_dir.is_none() {
        let _ = std::fs::create_dir_all(&images_dir);
    }
    std::fs::read_dir(&images_dir)
        .map_err(|source| StartError::ImagesDir { path: images_dir.clone(), source })?;

    let progress = Progress::new();
    let timings = Arc::new(settings.timings());
    let logs_dir = settings.data_dir.join("logs");
    let callbacks = Callbacks {
        store: store.clone(),
        progress: progress.clone(),
        clock: Arc::clone(&clock),
        timings: Arc::clone(&timings),
        logs_dir: logs_dir.clone(),
    };
    let scripts = Arc::new(Renderer {
        ca: Arc::<ServingIdentity>::clone(&identity),
        url_base: settings.url_base.clone(),
        reference_boot: settings.reference_boot,
    });
    let firmware = Boot {
        store: store.clone(),
        clock: Arc::clone(&clock),
        timings: Arc::clone(&timings),
        scripts: Arc::clone(&scripts),
        proxies: Arc::new(settings.trusted_proxies.clone()),
        rate: Arc::new(RateLimit::default()),
    };
    let admin = Admin {
        store: store.clone(),
        progress: progress.clone(),
        clock: Arc::clone(&clock),
        info: Arc::new(settings.info()),
        scripts: Arc::clone(&scripts),
    };

    let reconcilers = reconcile::Context {
        store: store.clone(),
        progress: progress.clone(),
        clock: Arc::clone(&clock),
        timings: Arc::clone(&timings),
        bmc: Arc::new(RedfishConnector::new(proxy)),
        url_base: settings.url_base.clone(),
        scripts,
        logs_dir,
        max_concurrent: usize::try_from(settings.max_concurrent_reconciles).unwrap_or(1),
    };

    let https = bind("listen", settings.listen).await?;
    let http = bind("http-listen", settings.http_listen).await?;
    let admin_tcp = match settings.admin_listen {
        None => None,
        Some(address) => {
            let token = admin::token_file(&settings.data_dir.join("admin.token"))?;
            Some((bind("admin-listen", address).await?, token))
        }
    };
    let socket = settings.admin_socket();
    let unix = admin::bind_unix(&socket)?;

    let mut parts = JoinSet::new();
    let secure = callback::router(callbacks).merge(boot::router(firmware.clone(), settings.url_base.clone()));
    let mut plain = images::router(images_dir);
    if settings.boot_http {
        plain = plain.merge(boot::router(firmware, settings.http_url_base()));
    }
    let local = |listener: &TcpListener, asked: SocketAddr| listener.local_addr().unwrap_or(asked);
    let addresses = Addresses {
        callbacks: local(&https, settings.listen),
        images: local(&http, settings.http_listen),
        admin: admin_tcp.as_ref().and_then(|(listener, _)| listener.local_addr().ok()),
    };
    announce(&settings, &addresses, &socket);
    let (callbacks, images) = (Limits::CALLBACKS, Limits::IMAGES);
    parts.spawn(serve_tcp(https, Some(tls), secure, callbacks, shares(&settings, &callbacks), stop.clone()));
    parts.spawn(serve_tcp(http, None, plain, images, shares(&settings, &images), stop.clone()));
    let api: Router = admin::router(admin);
    if let Some((listener, token)) = admin_tcp {
        let guarded = admin::require_token(api.clone(), token);
        parts.spawn(serve_tcp(listener, None, guarded, Limits::ADMIN, Shares::unlimited(), stop.clone()));
    }
    parts.spawn(serve_unix(unix, api, Limits::ADMIN, stop.clone()));
    parts.spawn(reconcile::run(reconcilers, stop.clone()));
    parts.spawn(upkeep::keep(identity, Arc::clone(&clock), stop.clone()));
    ready(&addresses);

    let ended = until_stopped(parts, &stop).await;
    let _ = std::fs::remove_file(&socket);
    tracing::info!("stopped");
    ended
}

/// Waits for every part. One that ends before it was told to takes the others along: half a controller loses hosts
/// silently.
async fn until_stopped(mut parts: JoinSet<()>, stop: &CancellationToken) -> Result<(), StartError> {
    let mut result = Ok(());
    while let Some(ended) = parts.join_next().await {
        let problem = match ended {
            Ok(()) if stop.is_cancelled() => continue,
            Ok(()) => "it ended by itself".to_owned(),
            Err(error) => error.to_string(),
        };
        tracing::error!(problem, "a part of the controller failed, stopping");
        stop.cancel();
        result = Err(StartError::Part { problem });
    }
    result
}

/// One listener's connections by address. A proxy speaks for many, and so does whatever runs on this machine.
fn shares(settings: &Settings, limits: &Limits) -> Shares {
    let proxies = settings.trusted_proxies.clone();
    let most = usize::try_from(settings.connections_per_address).unwrap_or(usize::MAX);
    Shares::new(most, limits.connections, move |ip| ip.is_loopback() || proxies.contains(ip))
}

async fn bind(flag: &'static str, address: SocketAddr) -> Result<TcpListener, StartError> {
    TcpListener::bind(address).await.map_err(|source| StartError::Listen { flag, address, source })
}

/// A connection is a file to the system, whose customary 1024 are few for a thousand servers and their BMCs.
fn allow_many_connections() {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    let raised = getrlimit(Resource::RLIMIT_NOFILE)
        .and_then(|(_, hard)| setrlimit(Resource::RLIMIT_NOFILE, hard, hard));
    if let Err(error) = raised {
        tracing::warn!(%error, "the limit of open files stays as it is");
    }
}

/// A core file would hold tokens and BMC passwords.
fn leave_no_core() {
    use nix::sys::resource::{Resource, setrlimit};
    if let Err(error) = setrlimit(Resource::RLIMIT_CORE, 0, 0) {
        tracing::warn!(%error, "core files stay possible; they would hold secrets");
    }
}

fn hostname() -> Option<String> {
    nix::sys::utsname::uname().ok()?.nodename().to_str().map(str::to_owned)
}

fn announce(settings: &Settings, addresses: &Addresses, socket: &std::path::Path) {
    let base = settings.url_base.as_str();
    tracing::info!(listen = %addresses.callbacks, base, "callbacks and boot scripts (HTTPS)");
    let base = settings.http_url_base();
    tracing::info!(listen = %addresses.images, base = base.as_str(), dir = %settings.images_dir().display(), "images (HTTP)");
    let first_stage = if settings.boot_http { base } else { settings.url_base.clone() };
    let script = format!(
        "chain {}/ipxe/${{net0/mac}}?platform=${{platform}}",
        first_stage.as_str().trim_end_matches('/')
    );
    tracing::info!(script, "let iPXE start with this");
    if let Some(listen) = addresses.admin {
        tracing::info!(%listen, token_file = %settings.data_dir.join("admin.token").display(), "admin API (HTTP)");
    }
    tracing::info!(socket = %socket.display(), "admin API");
    tracing::info!("ready; next: farrier --admin-socket {} get hosts", socket.display());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parts as they are: each ends when it is told to.
    fn obedient(stop: &CancellationToken) -> JoinSet<()> {
        let mut parts = JoinSet::new();
        for _ in 0..3 {
            parts.spawn(stop.clone().cancelled_owned());
        }
        parts
    }

    #[tokio::test]
    async fn being_stopped_is_no_failure() {
        let stop = CancellationToken::new();
        let parts = obedient(&stop);
        stop.cancel();
        until_stopped(parts, &stop).await.unwrap();
    }

    #[tokio::test]
    async fn a_part_that_ends_by_itself_stops_the_others_and_is_told() {
        for panics in [false, true] {
            let stop = CancellationToken::new();
            let mut parts = obedient(&stop);
            parts.spawn(async move { assert!(!panics, "on purpose") });
            let error = until_stopped(parts, &stop).await.unwrap_err();
            assert!(matches!(error, StartError::Part { .. }), "{error}");
            assert!(stop.is_cancelled());
        }
    }
}
