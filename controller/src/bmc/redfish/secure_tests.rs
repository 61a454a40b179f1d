//! TLS and proxies: which certificates are believed, and which way requests take.

use std::sync::Arc;
use std::time::Duration;

use farrier_shared::lifecycle::fault::{BmcObservation, Failure};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::ServerConfig;
use rustls_pki_types::PrivateKeyDer;

use super::simulator::{Simulator, access};
use super::transport::Pace;
use super::{RedfishConnector, parse_proxy};
use crate::bmc::{BmcError, Connector as _, HostAccess, Trust};

/// A CA and a server's certificate for `127.0.0.1` from it.
fn issued() -> (String, ServerConfig) {
    rustls::crypto::ring::default_provider().install_default().ok();
    let mut params = CertificateParams::new(vec![]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let ca = params.self_signed(&key).unwrap();
    let issuer = Issuer::from_params(&params, &key);
    let server = KeyPair::generate().unwrap();
    let leaf =
        CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap().signed_by(&server, &issuer).unwrap();
    let private = PrivateKeyDer::try_from(server.serialize_der()).unwrap();
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![leaf.der().clone()], private)
        .unwrap();
    (ca.pem(), config)
}

fn trusting(base: &str, trust: Trust) -> HostAccess {
    HostAccess { trust, ..access(base) }
}

async fn connect(access: &HostAccess) -> Result<(), BmcError> {
    let pace = Pace { call: Duration::from_secs(5), ..Pace::default() };
    RedfishConnector::with_pace(pace).connect(access).await.map(drop)
}

#[tokio::test]
async fn certificates_are_checked_against_what_the_access_says() {
    let (ca, config) = issued();
    let (other, _) = issued();
    let simulator = Simulator::start_tls("On", Arc::new(config)).await;
    let base = format!("https://{}", simulator.at);
    connect(&trusting(&base, Trust::Only(ca.into_bytes()))).await.unwrap();
    connect(&trusting(&base, Trust::Nothing)).await.unwrap();
    let requests = simulator.with(|m| m.requests);
    let refused = connect(&trusting(&base, Trust::Only(other.into_bytes()))).await.unwrap_err();
    assert!(matches!(refused.observation(), BmcObservation::Failed { failure: Failure::Connection, .. }));
    assert!(refused.to_string().contains("certificate"), "{refused}");
    assert_eq!(simulator.with(|m| m.requests), requests, "nothing was sent before the check");
}

#[tokio::test]
async fn plain_http_on_a_tls_port_and_the_reverse_are_told_as_such() {
    let (ca, config) = issued();
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
