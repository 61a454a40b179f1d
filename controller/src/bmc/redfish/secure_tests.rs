//! TLS and proxies: which certificates are believed, and which way requests take.

use std::sync::Arc;
use std::time::Duration;

use farrier_shared::lifecycle::fault::{BmcObservation, Failure};
use rcgen::{BasicConstraints, Certificate, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ClientConfig, ClientConnection, HandshakeKind, ServerConfig, ServerConnection};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};

use super::given;
use super::simulator::{Simulator, access};
use super::transport::Pace;
use super::{RedfishConnector, parse_proxy};
use crate::bmc::{BmcError, Connector as _, HostAccess, Trust};

/// A CA and a server's certificate from it, and that server.
struct Issued {
    ca: String,
    leaf: String,
    config: ServerConfig,
}

/// A CA that has issued a certificate for `name`.
fn issued(name: &str) -> Issued {
    let mut params = CertificateParams::new(vec![]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let ca = params.self_signed(&key).unwrap();
    let issuer = Issuer::from_params(&params, &key);
    let server = KeyPair::generate().unwrap();
    let leaf = CertificateParams::new(vec![name.to_owned()]).unwrap().signed_by(&server, &issuer).unwrap();
    Issued { ca: ca.pem(), leaf: leaf.pem(), config: server_with(leaf.der(), &server) }
}

/// As from the factory: its own CA, for no name, and long expired.
fn factory() -> (Certificate, KeyPair) {
    let mut params = CertificateParams::new(vec![]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.not_before = rcgen::date_time_ymd(2001, 1, 1);
    params.not_after = rcgen::date_time_ymd(2011, 1, 1);
    let key = KeyPair::generate().unwrap();
    (params.self_signed(&key).unwrap(), key)
}

/// A server that shows a certificate and proves to have a key, be it that certificate's or not.
fn server_with(certificate: &CertificateDer<'static>, key: &KeyPair) -> ServerConfig {
    rustls::crypto::ring::default_provider().install_default().ok();
    let private = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let signing = rustls::crypto::ring::sign::any_supported_type(&private).unwrap();
    let certified = CertifiedKey::new(vec![certificate.clone()], signing);
    let resolver = SingleCertAndKey::from(certified);
    ServerConfig::builder().with_no_client_auth().with_cert_resolver(Arc::new(resolver))
}

fn trusting(base: &str, trust: Trust) -> HostAccess {
    HostAccess { trust, ..access(base) }
}

async fn connect(access: &HostAccess) -> Result<(), BmcError> {
    let pace = Pace { call: Duration::from_secs(5), ..Pace::default() };
    RedfishConnector::with_pace(pace).connect(access).await.map(drop)
}

/// Connects to a server that must be refused before anything is sent to it; the reason.
async fn refused(simulator: &Simulator, trust: &str) -> String {
    let base = format!("https://{}", simulator.at);
    let requests = simulator.with(|m| m.requests);
    let error = connect(&trusting(&base, Trust::Only(trust.into()))).await.unwrap_err();
    assert!(matches!(error.observation(), BmcObservation::Failed { failure: Failure::Connection, .. }));
    assert_eq!(simulator.with(|m| m.requests), requests, "nothing was sent before the check");
    error.to_string()
}

#[tokio::test]
async fn certificates_are_checked_against_what_the_access_says() {
    let Issued { ca, config, .. } = issued("127.0.0.1");
    let simulator = Simulator::start_tls("On", Arc::new(config)).await;
    let base = format!("https://{}", simulator.at);
    connect(&trusting(&base, Trust::Only(ca.into_bytes()))).await.unwrap();
    connect(&trusting(&base, Trust::Nothing)).await.unwrap();
    let other = issued("127.0.0.1");
    let reason = refused(&simulator, &other.ca).await;
    assert!(reason.contains("certificate"), "{reason}");
    refused(&simulator, &other.leaf).await;
}

#[tokio::test]
async fn a_factory_certificate_is_believed_when_it_is_the_very_one_that_was_given() {
    let ((mine, key), (other, _)) = (factory(), factory());
    let simulator = Simulator::start_tls("On", Arc::new(server_with(mine.der(), &key))).await;
    let base = format!("https://{}", simulator.at);
    connect(&trusting(&base, Trust::Only(mine.pem().into_bytes()))).await.unwrap();
    let both = format!("{}{}", other.pem(), mine.pem());
    connect(&trusting(&base, Trust::Only(both.into_bytes()))).await.unwrap();
    refused(&simulator, &other.pem()).await;
}

#[tokio::test]
async fn a_certificate_for_another_name_is_believed_only_when_it_was_given_itself() {
    let Issued { ca, leaf, config } = issued("idrac-factory.example");
    let simulator = Simulator::start_tls("On", Arc::new(config)).await;
    let reason = refused(&simulator, &ca).await;
    assert!(reason.contains("TLS failed"), "{reason}");
    let base = format!("https://{}", simulator.at);
    connect(&trusting(&base, Trust::Only(leaf.into_bytes()))).await.unwrap();
}

#[tokio::test]
async fn a_given_certificate_is_worth_nothing_without_its_key() {
    let (mine, _) = factory();
    let stranger = KeyPair::generate().unwrap();
    for versions in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let mut config = server_with(mine.der(), &stranger);
        let resolver = Arc::clone(&config.cert_resolver);
        config = ServerConfig::builder_with_protocol_versions(&[versions])
            .with_no_client_auth()
            .with_cert_resolver(resolver);
        let simulator = Simulator::start_tls("On", Arc::new(config)).await;
        refused(&simulator, &mine.pem()).await;
    }
}

/// Shakes hands in memory; how that went.
fn shake_hands(client: &Arc<ClientConfig>, server: &Arc<ServerConfig>, name: &str) -> HandshakeKind {
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let mut client = ClientConnection::new(Arc::clone(client), name).unwrap();
    let mut server = ServerConnection::new(Arc::clone(server)).unwrap();
    while client.wants_write() || server.wants_write() {
        let mut sent = Vec::new();
        while client.wants_write() {
            client.write_tls(&mut sent).unwrap();
        }
        let mut sent = sent.as_slice();
        while !sent.is_empty() {
            server.read_tls(&mut sent).unwrap();
            server.process_new_packets().unwrap();
        }
        let mut answered = Vec::new();
        while server.wants_write() {
            server.write_tls(&mut answered).unwrap();
        }
        let mut answered = answered.as_slice();
        while !answered.is_empty() {
            client.read_tls(&mut answered).unwrap();
            client.process_new_packets().unwrap();
        }
    }
    assert!(!client.is_handshaking() && !server.is_handshaking());
    client.handshake_kind().unwrap()
}

#[test]
fn sessions_of_a_whole_fleet_are_taken_up_again_with_the_next_look() {
    let Issued { leaf, config, .. } = issued("127.0.0.1");
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let mut server = ServerConfig::builder_with_protocol_versions(&[version])
            .with_no_client_auth()
            .with_cert_resolver(Arc::clone(&config.cert_resolver));
        server.ticketer = rustls::crypto::ring::Ticketer::new().unwrap();
        let server = Arc::new(server);
        let client = Arc::new(given::config(leaf.as_bytes()).unwrap());
        let look = |n: u32| shake_hands(&client, &server, &format!("10.0.{}.{}", n / 250, n % 250));
        for expected in [HandshakeKind::Full, HandshakeKind::Resumed, HandshakeKind::Resumed] {
            assert!((0..500).all(|n| look(n) == expected), "{version:?} {expected:?}");
        }
        // A bundle that says something else knows nothing of these sessions.
        let another = Arc::new(given::config(leaf.as_bytes()).unwrap());
        assert_eq!(shake_hands(&another, &server, "10.0.0.0"), HandshakeKind::Full);
    }
}

#[tokio::test]
async fn plain_http_on_a_tls_port_and_the_reverse_are_told_as_such() {
    let Issued { ca, config, .. } = issued("127.0.0.1");
    let secure = Simulator::start_tls("On", Arc::new(config)).await;
    let plain = Simulator::start("On").await;
    for access in [
        trusting(&format!("http://{}", secure.at), Trust::System),
        trusting(&format!("https://{}", plain.at), Trust::Only(ca.into_bytes())),
    ] {
        let error = connect(&access).await.unwrap_err();
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }
}

#[tokio::test]
async fn s133_a_proxy_is_used_when_one_is_given() {
    rustls::crypto::ring::default_provider().install_default().ok();
    // A proxy is asked for whole URLs; the simulator looks at their paths alone.
    let proxy = Simulator::start("On").await;
    let connector = RedfishConnector::new(Some(parse_proxy(&format!("http://{}", proxy.at)).unwrap()));
    connector.connect(&access("http://bmc.invalid")).await.unwrap();
    assert!(proxy.with(|m| m.requests) > 0);
}
