//! The Redfish service: HTTPS with a certificate of its own CA, Basic authentication, one system.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result};
use axum::body::Bytes;
use axum::extract::{Path as UrlPath, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use axum_server::Handle;
use axum_server::tls_rustls::RustlsConfig;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::machine::Machine;
use super::shapes;
use crate::certificate::Authority;

/// Who may use the BMC.
#[derive(Clone, Debug)]
pub struct Login {
    /// User name.
    pub user: String,
    /// Password.
    pub password: String,
}

/// A running BMC; it stops answering when dropped.
#[derive(Debug)]
pub struct Bmc {
    /// Its base URL.
    pub url: String,
    /// The CA its certificate is from, PEM.
    pub ca_pem: String,
    /// Who may use it.
    pub login: Login,
    handle: Handle<SocketAddr>,
}

struct Shared {
    machine: Machine,
    authorization: String,
    log: Mutex<File>,
}

impl Bmc {
    /// Serves `machine` at `address`, and writes each request's method, path and status to `log`.
    ///
    /// # Errors
    /// When the address is taken or no certificate can be made.
    pub async fn serve(machine: Machine, address: SocketAddr, login: Login, log: &Path) -> Result<Self> {
        let shared = Arc::new(Shared {
            machine,
            authorization: format!("Basic {}", STANDARD.encode(format!("{}:{}", login.user, login.password))),
            log: Mutex::new(
                OpenOptions::new()
                    .create(true)
                    .append(true)
                    .open(log)
                    .with_context(|| format!("open {}", log.display()))?,
            ),
        });
        let authority = Authority::new("Farrier lab BMC CA")?;
        let leaf = authority.issue(&address.ip().to_string())?;
        let tls = RustlsConfig::from_pem(leaf.certificate_pem.into(), leaf.key_pem.into()).await?;
        let handle = Handle::new();
        let listener =
            std::net::TcpListener::bind(address).with_context(|| format!("listen on {address}"))?;
        listener.set_nonblocking(true)?;
        let server = axum_server::from_tcp_rustls(listener, tls)?.handle(handle.clone());
        tokio::spawn(server.serve(router(shared).into_make_service()));
        Ok(Self { url: format!("https://{address}"), ca_pem: authority.pem().to_owned(), login, handle })
    }
}

impl Drop for Bmc {
    fn drop(&mut self) {
        self.handle.shutdown();
    }
}

fn router(shared: Arc<Shared>) -> Router {
    let protected = Router::new()
        .route("/redfish/v1/Systems", get(systems))
        .route(shapes::SYSTEM, get(system).patch(patch_system))
        .route("/redfish/v1/Systems/1/EthernetInterfaces", get(ethernets))
        .route("/redfish/v1/Systems/1/EthernetInterfaces/{index}", get(ethernet))
        .route("/redfish/v1/Systems/1/Actions/ComputerSystem.Reset", post(reset))
        .layer(from_fn_with_state(shared.clone(), authenticate));
    Router::new()
        .route("/redfish/v1", get(async || Json(shapes::root())))
        .route("/redfish/v1/", get(async || Json(shapes::root())))
        .merge(protected)
        .layer(from_fn_with_state(shared.clone(), record))
        .with_state(shared)
}

async fn record(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    let line = format!("{} {}", request.method(), request.uri().path());
    let response = next.run(request).await;
    let mut log = shared.log.lock().unwrap_or_else(PoisonError::into_inner);
    writeln!(log, "{line} {}", response.status().as_u16()).ok();
    drop(log);
    response
}

async fn authenticate(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    request: Request,
    next: Next,
) -> Response {
    let given = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    if given == Some(shared.authorization.as_str()) {
        return next.run(request).await;
    }
    (StatusCode::UNAUTHORIZED, Json(shapes::error("wrong user name or password"))).into_response()
}

async fn systems() -> Json<Value> {
    let members = [shapes::SYSTEM.to_owned()];
    Json(shapes::collection("/redfish/v1/Systems", "ComputerSystemCollection", &members))
}

async fn system(State(shared): State<Arc<Shared>>) -> Json<Value> {
    Json(shapes::system(&shared.machine))
}

async fn patch_system(State(shared): State<Arc<Shared>>, body: Bytes) -> Response {
    let once = serde_json::from_slice(&body)
        .map_err(|error| error.to_string())
        .and_then(|patch| shapes::network_once(&patch));
    match once {
        Ok(once) => done(shared.machine.set_network_once(once).await),
        Err(message) => bad_request(&message),
    }
}

async fn ethernets(State(shared): State<Arc<Shared>>) -> Json<Value> {
    let path = format!("{}/EthernetInterfaces", shapes::SYSTEM);
    let count = shared.machine.hardware().nics.len();
    let members: Vec<String> = (0..count).map(|index| format!("{path}/{index}")).collect();
    Json(shapes::collection(&path, "EthernetInterfaceCollection", &members))
}

async fn ethernet(State(shared): State<Arc<Shared>>, UrlPath(index): UrlPath<usize>) -> Response {
    match shapes::ethernet(&shared.machine, index) {
        Some(nic) => Json(nic).into_response(),
        None => (StatusCode::NOT_FOUND, Json(shapes::error("no such interface"))).into_response(),
    }
}

async fn reset(State(shared): State<Arc<Shared>>, body: Bytes) -> Response {
    let request: Value = serde_json::from_slice(&body).unwrap_or_default();
    let machine = &shared.machine;
    match request["ResetType"].as_str() {
        Some("On") => done(machine.on().await),
        Some("ForceOff") => done(machine.force_off().await),
        Some("GracefulShutdown") => done(machine.graceful_shutdown().await),
        Some("ForceRestart") => done(machine.force_restart().await),
        other => bad_request(&format!("no such reset type: {other:?}")),
    }
}

fn done(result: Result<()>) -> Response {
    match result {
        Ok(()) => StatusCode::NO_CONTENT.into_response(),
        Err(error) => {
            let message = shapes::error(&format!("{error:#}"));
            (StatusCode::INTERNAL_SERVER_ERROR, Json(message)).into_response()
        }
    }
}

fn bad_request(message: &str) -> Response {
    (StatusCode::BAD_REQUEST, Json(shapes::error(message))).into_response()
}
