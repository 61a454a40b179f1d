//! TLS of played BMCs: one self-signed certificate for all, as one that a factory gave, which operators pin.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Result;
use axum::serve::Listener;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls_pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// What BMCs prove themselves with.
pub(super) struct Identity {
    /// In PEM.
    pub(super) certificate: String,
    acceptor: TlsAcceptor,
}

impl Identity {
    pub(super) fn new() -> Result<Self> {
        let made = rcgen::generate_simple_self_signed(["bmc".to_owned()])?;
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)?;
        // Each real BMC remembers its one client; here all of them would share one small memory of sessions.
        config.ticketer = ring::Ticketer::new()?;
        Ok(Self { certificate: made.cert.pem(), acceptor: TlsAcceptor::from(Arc::new(config)) })
    }

    pub(super) fn at(&self, tcp: TcpListener) -> Secure {
        Secure { tcp, acceptor: self.acceptor.clone() }
    }
}

/// A listener that speaks TLS.
pub(super) struct Secure {
    tcp: TcpListener,
    acceptor: TlsAcceptor,
}

impl Listener for Secure {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let (tcp, from) = Listener::accept(&mut self.tcp).await;
            match self.acceptor.accept(tcp).await {
                Ok(stream) => return (stream, from),
                // Controllers are killed at any moment.
                Err(error) => tracing::debug!(%from, %error, "a handshake broke off"),
            }
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.tcp.local_addr()
    }
}
