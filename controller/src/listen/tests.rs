//! What a peer can and cannot do to a listener.

use axum::routing::get;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::*;

const SHORT: Duration = Duration::from_millis(300);

async fn start(
    tls: Option<Arc<ServerConfig>>,
    limits: Limits,
) -> (SocketAddr, CancellationToken, tokio::task::JoinHandle<()>) {
    let router = Router::new()
        .route("/", get(|ConnectInfo(peer): ConnectInfo<SocketAddr>| async move { peer.ip().to_string() }));
    serve_on(tls, limits, router).await
}

async fn serve_on(
    tls: Option<Arc<ServerConfig>>,
    limits: Limits,
    router: Router,
) -> (SocketAddr, CancellationToken, tokio::task::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let stop = CancellationToken::new();
    let task = tokio::spawn(serve_tcp(listener, tls, router, limits, Shares::unlimited(), stop.clone()));
    (address, stop, task)
}

#[tokio::test]
async fn an_address_beyond_its_share_is_closed_at_once_and_served_again_when_it_has_room() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = Router::new().route("/", get(|| async { "served" }));
    let limits = Limits::CALLBACKS;
    let shares = Shares::new(2, limits.connections, |_| false);
    tokio::spawn(serve_tcp(listener, None, router, limits, shares, CancellationToken::new()));
    let mut held = Vec::new();
    for _ in 0..2 {
        // Silent: an answer would close it, this far into the share.
        held.push(TcpStream::connect(address).await.unwrap());
    }
    let mut refused = TcpStream::connect(address).await.unwrap();
    let mut said = Vec::new();
    // Closed or reset, without a word.
    let _ = tokio::time::timeout(Duration::from_secs(10), refused.read_to_end(&mut said)).await.unwrap();
    assert!(said.is_empty());
    held.clear();
    let deadline = tokio::time::Instant::now() + Duration::from_secs(10);
    loop {
        let mut socket = TcpStream::connect(address).await.unwrap();
        let _ = socket.write_all(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await;
        let mut answer = String::new();
        let _ = socket.read_to_string(&mut answer).await;
        if answer.ends_with("served") {
            break;
        }
        assert!(tokio::time::Instant::now() < deadline, "places are not given back");
    }
}

async fn exchange_once(address: SocketAddr) -> String {
    let mut socket = TcpStream::connect(address).await.unwrap();
    socket.write_all(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn a_peer_that_stays_silent_is_dropped_and_frees_its_place() {
    let limits = Limits { head: SHORT, stall: SHORT, handshake: SHORT, connections: 1, ..Limits::CALLBACKS };
    let (address, stop, task) = start(None, limits).await;
    // Takes the only place, once with nothing and once with half a request.
    for sent in [&b""[..], b"GET / HT"] {
        let mut silent = TcpStream::connect(address).await.unwrap();
        silent.write_all(sent).await.unwrap();
        assert!(exchange_once(address).await.ends_with("127.0.0.1"));
        // Closed, with or without a last word.
        let mut rest = Vec::new();
        let _ = silent.read_to_end(&mut rest).await;
    }
    stop.cancel();
    task.await.unwrap();
    TcpStream::connect(address).await.unwrap_err();
}

/// The head of the answer to one request on a connection that stays with the caller.
async fn ask(socket: &mut TcpStream) -> String {
    socket.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    let mut answer = vec![0; 4096];
    let len = socket.read(&mut answer).await.unwrap();
    String::from_utf8_lossy(&answer[..len]).to_lowercase()
}

#[tokio::test]
async fn idle_connections_never_keep_out_those_who_have_something_to_say() {
    let limits = Limits { connections: 8, ..Limits::CALLBACKS };
    let (address, stop, _task) = start(None, limits).await;
    let mut idle = Vec::new();
    for _ in 0..4 {
        let mut socket = TcpStream::connect(address).await.unwrap();
        assert!(!ask(&mut socket).await.contains("connection: close"), "there is room to keep it open");
        idle.push(socket);
    }
    // Far more than there are places, and none of them closed by its client.
    for _ in 0..32 {
        let mut socket = TcpStream::connect(address).await.unwrap();
        let answer = tokio::time::timeout(Duration::from_secs(10), ask(&mut socket)).await.unwrap();
        assert!(answer.contains("connection: close"), "{answer}");
        idle.push(socket);
    }
    stop.cancel();
}

#[tokio::test]
async fn agents_behind_one_address_never_keep_each_other_out() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = Router::new().route("/", get(|| async { "served" }));
    let limits = Limits::CALLBACKS;
    let shares = Shares::new(8, limits.connections, |_| false);
    let stop = CancellationToken::new();
    tokio::spawn(serve_tcp(listener, None, router, limits, shares, stop.clone()));
    let mut idle = Vec::new();
    for agent in 0..36 {
        let mut socket = TcpStream::connect(address).await.unwrap();
        let answer = tokio::time::timeout(Duration::from_secs(10), ask(&mut socket)).await.unwrap();
        assert_eq!(answer.contains("connection: close"), agent >= 4, "{answer}");
        if agent >= 4 {
            // The place is free once the listener has closed, which it does right after its answer.
            assert_eq!(socket.read(&mut [0]).await.unwrap(), 0);
        }
        idle.push(socket);
    }
    stop.cancel();
}

#[tokio::test]
async fn a_tls_handshake_that_never_comes_is_given_up() {
    let dir = tempfile::tempdir().unwrap();
    let files = crate::tls::TlsFiles::new(dir.path().to_owned());
    let now = crate::clock::SystemClock::shared().now();
    let identity =
        crate::tls::ServingIdentity::open(files, crate::tls::ServingNames::default(), now).unwrap();
    let limits = Limits { handshake: SHORT, ..Limits::CALLBACKS };
    let (address, stop, _task) = start(Some(identity.server_config().unwrap()), limits).await;
    let mut silent = TcpStream::connect(address).await.unwrap();
    let closed = tokio::time::timeout(Duration::from_secs(10), silent.read(&mut [0])).await.unwrap();
    assert!(matches!(closed, Ok(0) | Err(_)), "{closed:?}");
    stop.cancel();
}

/// An answer that takes longer than any single wait may, one line at a time.
fn slow_lines() -> axum::body::Body {
    let lines = futures_util::stream::unfold(0, |sent| async move {
        if sent == 8 {
            return None;
        }
        tokio::time::sleep(SHORT / 3).await;
        Some((Ok::<_, std::convert::Infallible>(axum::body::Bytes::from_static(b"line\n")), sent + 1))
    });
    axum::body::Body::from_stream(lines)
}

#[tokio::test]
async fn a_long_answer_is_not_cut_because_its_reader_only_reads() {
    let limits = Limits { head: SHORT, stall: SHORT, ..Limits::CALLBACKS };
    let router = Router::new().route("/", get(|| async { slow_lines() }));
    let (address, stop, _task) = serve_on(None, limits, router).await;
    let answer = exchange_once(address).await;
    assert_eq!(answer.matches("line").count(), 8, "{answer}");
    assert!(answer.ends_with("0\r\n\r\n"), "{answer}");
    stop.cancel();
}
