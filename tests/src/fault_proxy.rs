//! A proxy in front of a BMC that fails in every way a network or a BMC can.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse as _, Response};
use farrier_controller::listen::{Limits, Shares, serve_tcp};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::certificate::{Authority, Leaf};

/// A way to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing listens.
    Refuse,
    /// Connections are accepted and reset.
    Reset,
    /// Every answer has this status.
    Status(u16),
    /// Every answer comes this late.
    Slow(Duration),
    /// Every answer is a web page.
    Garbage,
    /// Every answer leads somewhere else.
    Redirect,
    /// The certificate is of a CA that nobody trusts.
    BadCertificate,
}

/// The proxy; passes everything on while no fault is set.
#[derive(Debug)]
pub struct FaultProxy {
    at: SocketAddr,
    upstream: Upstream,
    good: Arc<ServerConfig>,
    bad: Arc<ServerConfig>,
    running: Option<(CancellationToken, JoinHandle<()>)>,
}

#[derive(Clone, Debug)]
struct Upstream {
    base: String,
    client: reqwest::Client,
}

impl FaultProxy {
    /// A proxy to `base`, with a certificate of `authority`.
    ///
    /// # Errors
    /// When there is no port or no certificate for it.
    pub async fn start(base: &str, client: reqwest::Client, authority: &Authority) -> Result<Self> {
        let at = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?.local_addr()?;
        let upstream = Upstream { base: base.to_owned(), client };
        let good = config(&authority.issue("127.0.0.1")?)?;
        let bad = config(&Authority::new("Nobody's CA")?.issue("127.0.0.1")?)?;
        let mut proxy = Self { at, upstream, good, bad, running: None };
        proxy.set(None).await?;
        Ok(proxy)
    }

    /// Its base URL.
    pub fn base(&self) -> String {
        format!("https://{}", self.at)
    }

    /// Fails in this way from now on; what is open is cut.
    ///
    /// # Errors
    /// When the port cannot be had back.
    pub async fn set(&mut self, fault: Option<Fault>) -> Result<()> {
        if let Some((stop, task)) = self.running.take() {
            stop.cancel();
            task.await.context("the proxy's listener")?;
        }
        if fault == Some(Fault::Refuse) {
            return Ok(());
        }
        let listener = TcpListener::bind(self.at).await?;
        let stop = CancellationToken::new();
        let task = if fault == Some(Fault::Reset) {
            tokio::spawn(reset_all(listener, stop.clone()))
        } else {
            let tls = if fault == Some(Fault::BadCertificate) { &self.bad } else { &self.good };
            let app = Router::new().fallback(answer).with_state((self.upstream.clone(), fault));
            let limits = Limits::ADMIN;
            tokio::spawn(serve_tcp(
                listener,
                Some(Arc::clone(tls)),
                app,
                limits,
                Shares::unlimited(),
                stop.clone(),
            ))
        };
        self.running = Some((stop, task));
        Ok(())
    }
}

fn config(leaf: &Leaf) -> Result<Arc<ServerConfig>> {
    let chain = vec![CertificateDer::from_pem_slice(leaf.certificate_pem.as_bytes())?];
    let key = PrivateKeyDer::from_pem_slice(leaf.key_pem.as_bytes())?;
    Ok(Arc::new(ServerConfig::builder().with_no_client_auth().with_single_cert(chain, key)?))
}

async fn reset_all(listener: TcpListener, stop: CancellationToken) {
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        if let Ok((mut socket, _)) = accepted {
            // With its first words unread a close is a reset.
            let _ = socket.read(&mut [0; 1]).await;
            let _ = socket.set_zero_linger();
        }
    }
}

async fn answer(
    State((upstream, fault)): State<(Upstream, Option<Fault>)>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    match fault {
        Some(Fault::Status(code)) => {
            return StatusCode::from_u16(code).unwrap_or(StatusCode::IM_A_TEAPOT).into_response();
        }
        Some(Fault::Slow(by)) => tokio::time::sleep(by).await,
        Some(Fault::Garbage) => return "<html>It works!</html>".into_response(),
        Some(Fault::Redirect) => {
            return (StatusCode::FOUND, [(header::LOCATION, upstream.base)]).into_response();
        }
        Some(Fault::Refuse | Fault::Reset | Fault::BadCertificate) | None => {}
    }
    match forward(&upstream, method, &uri, &headers, body).await {
        Ok(response) => response,
        Err(_) => StatusCode::BAD_GATEWAY.into_response(),
    }
}

async fn forward(
    upstream: &Upstream,
    method: Method,
    uri: &Uri,
    headers: &HeaderMap,
    body: Bytes,
) -> Result<Response> {
    let mut request = upstream.client.request(method, format!("{}{uri}", upstream.base)).body(body);
    for name in [header::AUTHORIZATION, header::CONTENT_TYPE, header::IF_MATCH, header::ACCEPT] {
        if let Some(value) = headers.get(&name) {
            request = request.header(name, value);
        }
    }
    let answer = request.send().await?;
    let (status, headers) = (answer.status(), answer.headers().clone());
    let mut response = (status, answer.bytes().await?).into_response();
    for name in [header::ETAG, header::CONTENT_TYPE] {
        if let Some(value) = headers.get(&name) {
            response.headers_mut().insert(name, value.clone());
        }
    }
    Ok(response)
}
