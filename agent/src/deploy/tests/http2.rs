//! An image server that speaks HTTP/2, as those of https do where they can.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Mutex;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{StatusCode, Version, header};
use axum::response::Response;
use axum_server::Handle;
use axum_server::tls_rustls::RustlsConfig;
use rcgen::{CertificateParams, KeyPair};

use super::disk::FileTarget;
use super::image::{MIB, gpt_image};
use super::*;

struct Images {
    image: Bytes,
    /// After how many bytes the next answers break off.
    cuts: Mutex<VecDeque<usize>>,
    /// Version of each request, and the range it asked for.
    seen: Mutex<Vec<(Version, Option<String>)>>,
}

async fn answer(State(images): State<Arc<Images>>, request: Request) -> Response {
    let range = request.headers().get(header::RANGE).map(|range| range.to_str().unwrap().to_owned());
    images.seen.lock().unwrap().push((request.version(), range.clone()));
    let from =
        range.and_then(|range| range.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok()).unwrap_or(0);
    let rest = images.image.slice(from..);
    let cut = images.cuts.lock().unwrap().pop_front();
    let whole = images.image.len();
    let mut answer =
        Response::builder().header(header::ETAG, "\"one\"").header(header::CONTENT_LENGTH, rest.len());
    if from > 0 {
        answer = answer
            .status(StatusCode::PARTIAL_CONTENT)
            .header(header::CONTENT_RANGE, format!("bytes {from}-{}/{whole}", whole - 1));
    }
    let sent = rest.slice(..cut.unwrap_or(rest.len()).min(rest.len()));
    let pieces: Vec<_> = sent.chunks(10_000).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
    let end = cut.map(|_| Err(std::io::Error::other("the stream is reset")));
    answer.body(Body::from_stream(futures_util::stream::iter(pieces.into_iter().chain(end)))).unwrap()
}

#[tokio::test]
async fn an_image_comes_over_http_2_and_goes_on_where_a_stream_was_reset() {
    let client = client();
    let image = gpt_image(3 * MIB, 512);
    let cuts = [1, MIB, 70_000].into_iter().collect();
    let images =
        Arc::new(Images { image: image.clone().into(), cuts: Mutex::new(cuts), seen: Mutex::default() });
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(Vec::new()).unwrap().self_signed(&key).unwrap();
    let tls = RustlsConfig::from_der(vec![certificate.der().to_vec()], key.serialize_der()).await.unwrap();
    let handle = Handle::new();
    let router = Router::new().fallback(answer).with_state(Arc::clone(&images));
    let server = axum_server::bind_rustls(SocketAddr::from(([127, 0, 0, 1], 0)), tls);
    tokio::spawn(server.handle(handle.clone()).serve(router.into_make_service()));
    let address = handle.listening().await.unwrap();

    let order = Order {
        source: Source::new(format!("https://{address}/image").parse().unwrap()),
        digest: sha256(&image),
        content_digest: None,
        verify: Verify::Auto,
        grow: Grow::Off,
    };
    let target = FileTarget::new(4 * MIB as u64, 512);
    let (as_target, seed): (Arc<dyn Target>, _) =
        (Arc::clone(&target) as _, Arc::new(TestSeed { fails: false }));
    let outcome = Box::pin(install(&client, &order, as_target, seed, Arc::new(Progress::new()))).await;
    handle.shutdown();
    assert_eq!(outcome.unwrap().served, image.len() as u64);
    assert!(target.content()[34 * 512..image.len() - 512] == image[34 * 512..image.len() - 512]);
    let seen = images.seen.lock().unwrap();
    // What had come when a stream was reset may be lost with it, but never all of it twice.
    assert_eq!(seen.len(), 4, "{seen:?}");
    assert!(seen.iter().all(|(version, _)| *version == Version::HTTP_2), "{seen:?}");
    assert!(seen.last().unwrap().1.is_some(), "{seen:?}");
}
