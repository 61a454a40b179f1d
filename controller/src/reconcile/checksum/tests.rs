//! Checksum files from servers that behave, and from servers that do not.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Path;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse as _;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::*;
use crate::clock::SystemClock;
use crate::listen::{Limits, Shares, serve_tcp};
use crate::tls::{ServingIdentity, ServingNames, TlsFiles};

const IMAGE: &str = "https://images.example/v1/os.raw.zst?token=image-secret";

/// A server with a CA of its own.
struct Server {
    base: String,
    ca: Vec<u8>,
    /// Chunks sent by `/endless`.
    sent: Arc<AtomicUsize>,
    asked: Arc<AtomicUsize>,
    _stop: DropGuard,
    _dir: tempfile::TempDir,
}

impl Server {
    async fn start() -> Self {
        rustls::crypto::ring::default_provider().install_default().ok();
        let dir = tempfile::tempdir().unwrap();
        let names = ServingNames::collect(&"https://127.0.0.1:1".parse().unwrap(), &[], None);
        let now = SystemClock::shared().now();
        let identity = ServingIdentity::open(TlsFiles::new(dir.path().to_owned()), names, now).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("https://{}", listener.local_addr().unwrap());
        let (sent, asked) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
        let stop = CancellationToken::new();
        let router = router(Arc::clone(&sent), Arc::clone(&asked));
        let tls = identity.server_config().unwrap();
        tokio::spawn(serve_tcp(
            listener,
            Some(tls),
            router,
            Limits::CALLBACKS,
            Shares::unlimited(),
            stop.clone(),
        ));
        let ca = identity.ca_bundle().unwrap();
        Self { base, ca, sent, asked, _stop: stop.drop_guard(), _dir: dir }
    }

    fn trusted(&self) -> ClientBuilder {
        Client::builder().no_proxy().add_root_certificate(reqwest::Certificate::from_pem(&self.ca).unwrap())
    }

    async fn fetch(&self, path: &str) -> Result<Digest, String> {
        fetch(self.trusted(), &format!("{}{path}", self.base).parse().unwrap(), &image()).await
    }
}

fn image() -> WebUrl {
    IMAGE.parse().unwrap()
}

fn digest() -> Digest {
    format!("sha256:{}", "ab".repeat(32)).parse().unwrap()
}

fn router(sent: Arc<AtomicUsize>, asked: Arc<AtomicUsize>) -> Router {
    let good = format!("{}  other.raw\n{} *./os.raw.zst\n", "cd".repeat(32), "AB".repeat(32));
    let endless = move || {
        let sent = Arc::clone(&sent);
        let chunks = futures_util::stream::unfold(sent, |sent| async move {
            sent.fetch_add(1, Ordering::SeqCst);
            Some((Ok::<_, std::convert::Infallible>(Bytes::from(vec![b'#'; 4096])), sent))
        });
        async move { Body::from_stream(chunks) }
    };
    let moved = |to: String| (StatusCode::FOUND, [(header::LOCATION, to)]).into_response();
    Router::new()
        .route("/SHA256SUMS", get(move || async move { good }))
        .route(
            "/hops/{left}",
            get(move |Path(left): Path<u32>| async move {
                moved(if left == 1 { "/SHA256SUMS".to_owned() } else { format!("/hops/{}", left - 1) })
            }),
        )
        .route("/to/{*url}", get(move |Path(url): Path<String>| async move { moved(url) }))
        .route("/endless", get(endless))
        .route("/long", get(|| async { "#".repeat(MAX_BODY + 1) }))
        .route("/none", get(|| async { format!("{}  other.raw\nserver-secret\n", "cd".repeat(32)) }))
        .route("/gone", get(|| async { (StatusCode::NOT_FOUND, "server-secret") }))
        .route("/part", get(|| async { (StatusCode::PARTIAL_CONTENT, "ab".repeat(32)) }))
        .layer(axum::middleware::map_request(move |request: axum::extract::Request| {
            asked.fetch_add(1, Ordering::SeqCst);
            async move { request }
        }))
}

#[tokio::test]
async fn the_entry_of_the_image_is_found_straight_and_over_a_few_redirects() {
    let server = Server::start().await;
    for path in ["/SHA256SUMS", "/hops/1", "/hops/3"] {
        assert_eq!(server.fetch(path).await, Ok(digest()), "{path}");
    }
}

#[tokio::test]
async fn whatever_is_no_answer_is_told_without_repeating_it() {
    let server = Server::start().await;
    let table = [
        ("/hops/4", "HTTP 302"),
        ("/gone?key=url-secret", "HTTP 404"),
        ("/part", "HTTP 206"),
        ("/none", "no entry for the image"),
        ("/long", "larger than"),
        ("/endless", "larger than"),
    ];
    for (path, expected) in table {
        let error = server.fetch(path).await.unwrap_err();
        assert!(error.contains(expected), "{path}: {error}");
        assert!(error.contains("127.0.0.1"), "{path}: {error}");
        assert!(!error.contains("secret"), "{path}: {error}");
    }
    // What sockets and TLS buffer, and no more.
    assert!(server.sent.load(Ordering::SeqCst) < 10_000, "the endless body was read on and on");
}

#[tokio::test]
async fn a_redirect_to_anywhere_else_is_not_followed() {
    let (server, other) = (Server::start().await, Server::start().await);
    let elsewhere = [format!("{}/SHA256SUMS", other.base), server.base.replace("https", "http")];
    for url in elsewhere {
        let error = server.fetch(&format!("/to/{url}")).await.unwrap_err();
        assert!(error.contains("HTTP 302"), "{url}: {error}");
    }
    assert_eq!(other.asked.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_server_that_is_not_trusted_or_not_asked_over_tls_gets_no_request() {
    let (server, other) = (Server::start().await, Server::start().await);
    let url = format!("{}/SHA256SUMS", server.base).parse().unwrap();
    let error = fetch(other.trusted(), &url, &image()).await.unwrap_err();
    assert!(error.contains("not trusted"), "{error}");
    let plain = format!("{}/SHA256SUMS", server.base.replace("https", "http")).parse().unwrap();
    let error = fetch(server.trusted(), &plain, &image()).await.unwrap_err();
    assert!(error.contains("must be https"), "{error}");
    assert_eq!(server.asked.load(Ordering::SeqCst), 0);
}

/// The clock of tokio is paused: the wait takes no time.
#[tokio::test(start_paused = true)]
async fn a_server_that_says_nothing_is_given_up() {
    rustls::crypto::ring::default_provider().install_default().ok();
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/SHA256SUMS", silent.local_addr().unwrap()).parse().unwrap();
    let builder = Client::builder().no_proxy().tls_certs_only([]);
    let error = fetch(builder, &url, &image()).await.unwrap_err();
    assert!(error.contains("timed out"), "{error}");
}
