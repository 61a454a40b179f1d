//! Against a TLS server with certificates of chosen lives.

use std::net::SocketAddr;

use axum::Router;
use axum_server::Handle;
use axum_server::tls_rustls::RustlsConfig;
use farrier_shared::contract::HostKey;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, date_time_ymd};
use reqwest::dns::{Addrs, Name, Resolving};

use super::*;

/// Every name is this machine.
struct Here;

impl Resolve for Here {
    fn resolve(&self, _: Name) -> Resolving {
        let here: Addrs = Box::new(std::iter::once(SocketAddr::from(([127, 0, 0, 1], 0))));
        Box::pin(async { Ok(here) })
    }
}

fn authority() -> (String, Issuer<'static, KeyPair>) {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.not_before = date_time_ymd(2020, 1, 1);
    params.not_after = date_time_ymd(2120, 1, 1);
    let key = KeyPair::generate().unwrap();
    let pem = params.self_signed(&key).unwrap().pem();
    (pem, Issuer::new(params, key))
}

/// A server whose certificate, for `name`, lives for these years; asked by one that pins `pinned`.
async fn asked(name: &str, years: (i32, i32), pin_another: bool) -> Result<Heard, String> {
    rustls::crypto::ring::default_provider().install_default().ok();
    let (mut pem, issuer) = authority();
    let key = KeyPair::generate().unwrap();
    let mut leaf = CertificateParams::new(vec![name.to_owned()]).unwrap();
    leaf.not_before = date_time_ymd(years.0, 1, 1);
    leaf.not_after = date_time_ymd(years.1, 1, 1);
    let leaf = leaf.signed_by(&key, &issuer).unwrap();
    let tls = RustlsConfig::from_pem(leaf.pem().into(), key.serialize_pem().into()).await.unwrap();
    let handle = Handle::new();
    let server = axum_server::bind_rustls(SocketAddr::from(([127, 0, 0, 1], 0)), tls);
    let refuse = |headers: axum::http::HeaderMap| async move {
        assert!(!headers.contains_key("authorization"), "no secret is sent");
        axum::http::StatusCode::NOT_FOUND
    };
    let app = Router::new().fallback(refuse);
    tokio::spawn(server.handle(handle.clone()).serve(app.into_make_service()));
    let port = handle.listening().await.unwrap().port();
    if pin_another {
        pem = authority().0;
    }
    let params = BootParams {
        api: format!("https://controller.test:{port}").parse().unwrap(),
        host: HostKey::new("default".parse().unwrap(), "node-1".parse().unwrap()),
        token: "A".repeat(43).parse().unwrap(),
        target: "http://images.test/x".parse().unwrap(),
        target_digest: format!("sha256:{}", "0".repeat(64)).parse().unwrap(),
        provider_id: "b7://default/node-1".parse().unwrap(),
        ca_pem: pem.into_bytes(),
        disk: None,
        static_ip: None,
        timeout: Duration::from_secs(1),
        debug: false,
        bootif: None,
        extra: std::collections::HashMap::new(),
    };
    let bounds = Bounds::of(&params.ca_pem, 0).unwrap();
    assert_eq!(bounds.earliest, 1_577_836_800, "2020");
    let heard = ask(&params, Arc::new(Here), &bounds).await;
    handle.shutdown();
    heard
}

#[tokio::test]
async fn a_server_of_the_pinned_ca_tells_the_time_without_the_clock_being_asked() {
    let heard = asked("controller.test", (2021, 2119), false).await.unwrap();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    assert!(heard.time.abs_diff(now) < 60, "{heard:?}");
    assert_eq!(heard.valid_since, 1_609_459_200, "2021");
}

#[tokio::test]
async fn a_server_that_is_not_valid_at_the_time_it_tells_is_not_believed() {
    for years in [(2020, 2022), (2110, 2119)] {
        let error = asked("controller.test", years, false).await.unwrap_err();
        assert!(error.contains("not valid at the time it tells"), "{years:?}: {error}");
    }
}

#[tokio::test]
async fn the_pin_and_the_name_are_never_relaxed() {
    for (name, pin_another) in [("controller.test", true), ("other.test", false)] {
        let error = asked(name, (2021, 2119), pin_another).await.unwrap_err();
        assert!(error.contains("certificate"), "{error}");
    }
}

#[test]
fn dates_of_answers_are_read() {
    assert_eq!(read_date("Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777));
    assert_eq!(read_date("yesterday"), None);
}
