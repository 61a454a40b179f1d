//! What a strict client sees that trusts the CA file alone.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConnection};
use rustls_pki_types::ServerName;

use super::*;
use crate::tls::authority::SERVING_LIFE;

fn now() -> Time {
    "2026-11-29T12:00:00Z".parse().unwrap()
}

fn names() -> ServingNames {
    let base = "https://boot.example.org:8082".parse().unwrap();
    ServingNames::collect(&base, &["192.0.2.7".parse().unwrap()], None)
}

/// The machine's clock judges the handshake, so these certificates are dated by it.
fn wall() -> Time {
    crate::clock::SystemClock::shared().now()
}

/// One handshake with a byte each way.
fn handshake(identity: &Arc<ServingIdentity>, trust: &[u8], name: &str, sni: bool) -> Result<(), String> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let config = identity.server_config().unwrap();
    let server = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        let mut tls = ServerConnection::new(config).unwrap();
        let mut stream = rustls::Stream::new(&mut tls, &mut socket);
        let mut byte = [0];
        if stream.read_exact(&mut byte).is_ok() {
            stream.write_all(&byte).unwrap();
        }
    });
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(files::certificates("ca".as_ref(), trust).unwrap());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut client = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    client.enable_sni = sni;
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let mut tls = ClientConnection::new(Arc::new(client), name).unwrap();
    let mut socket = TcpStream::connect(address).unwrap();
    let mut stream = rustls::Stream::new(&mut tls, &mut socket);
    let mut byte = *b"x";
    let result =
        stream.write_all(&byte).and_then(|()| stream.read_exact(&mut byte)).map_err(|e| e.to_string());
    drop(socket);
    server.join().unwrap();
    result
}

#[test]
fn s099_a_client_that_trusts_only_the_ca_accepts_every_name_and_address_with_and_without_sni() {
    let dir = tempfile::tempdir().unwrap();
    let identity = ServingIdentity::open(TlsFiles::new(dir.path().join("tls")), names(), wall()).unwrap();
    let ca = identity.ca_bundle().unwrap();
    for name in ["boot.example.org", "localhost", "192.0.2.7", "127.0.0.1", "::1"] {
        for sni in [true, false] {
            assert_eq!(handshake(&identity, &ca, name, sni), Ok(()), "{name}, SNI {sni}");
        }
    }
    let refused = handshake(&identity, &ca, "other.example.org", true).unwrap_err();
    assert!(refused.contains("NotValidForName") || refused.contains("not valid for name"), "{refused}");
    let stranger = authority::new_authority(wall()).unwrap();
    handshake(&identity, stranger.cert_pem.as_bytes(), "localhost", true).unwrap_err();
}

#[test]
fn the_ca_may_issue_and_the_serving_certificate_may_not() {
    let dir = tempfile::tempdir().unwrap();
    let files = TlsFiles::new(dir.path().join("tls"));
    ServingIdentity::open(files.clone(), names(), now()).unwrap();
    let describe = |path: std::path::PathBuf| first(&path, &files::read(&path).unwrap().unwrap()).unwrap();
    let (ca, serving) = (describe(files.ca_cert()), describe(files.cert()));
    assert!(ca.is_ca && !serving.is_ca);
    assert_eq!(ca.subject, serving.issuer);
    assert!(ca.not_after.since(now()) > Duration::from_secs(3640 * 86_400));
    for file in [files.ca_cert(), files.ca_key(), files.cert(), files.key()] {
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600, "{file:?}");
    }
    assert_eq!(std::fs::metadata(files.dir()).unwrap().permissions().mode() & 0o777, 0o700);
}

#[test]
fn a_restart_keeps_both_certificates() {
    let dir = tempfile::tempdir().unwrap();
    let files = TlsFiles::new(dir.path().join("tls"));
    let serial = || (std::fs::read(files.ca_cert()).unwrap(), std::fs::read(files.cert()).unwrap());
    ServingIdentity::open(files.clone(), names(), now()).unwrap();
    let before = serial();
    ServingIdentity::open(files.clone(), names(), now()).unwrap();
    assert_eq!(before, serial());
}

#[test]
fn the_serving_certificate_is_renewed_before_its_last_third_and_the_ca_stays() {
    let dir = tempfile::tempdir().unwrap();
    let files = TlsFiles::new(dir.path().join("tls"));
    let identity = ServingIdentity::open(files.clone(), names(), now()).unwrap();
    let ca = identity.ca_bundle().unwrap();
    assert_eq!(identity.upkeep(now() + SERVING_LIFE / 2).unwrap(), Upkeep::Unchanged);
    assert_eq!(identity.upkeep(now() + SERVING_LIFE * 3 / 4).unwrap(), Upkeep::Renewed);
    assert_eq!(identity.ca_bundle().unwrap(), ca);
    let path = files.cert();
    let renewed = first(&path, &std::fs::read(&path).unwrap()).unwrap();
    assert!(renewed.not_after > now() + SERVING_LIFE);
}

#[test]
fn a_new_name_gets_a_new_certificate_at_the_next_start() {
    let dir = tempfile::tempdir().unwrap();
    let files = TlsFiles::new(dir.path().join("tls"));
    ServingIdentity::open(files.clone(), names(), now()).unwrap();
    let more = ServingNames::collect(&"https://10.1.1.1:1".parse().unwrap(), &[], None);
    let identity = ServingIdentity::open(files, more, wall()).unwrap();
    assert_eq!(handshake(&identity, &identity.ca_bundle().unwrap(), "10.1.1.1", false), Ok(()));
}

#[test]
fn s099_an_operators_certificate_is_served_as_it_is_and_its_replacement_picked_up() {
    let (ours, theirs) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let source = TlsFiles::new(theirs.path().to_owned());
    ServingIdentity::open(source.clone(), names(), wall()).unwrap();
    let files = TlsFiles::new(ours.path().to_owned());
    let copy = || {
        for (from, to) in
            [(source.ca_cert(), files.ca_cert()), (source.cert(), files.cert()), (source.key(), files.key())]
        {
            std::fs::copy(from, to).unwrap();
        }
    };
    copy();
    let lacking = ServingNames::collect(&"https://unlisted.example:1".parse().unwrap(), &[], None);
    let identity = ServingIdentity::open(files.clone(), lacking, wall()).unwrap();
    assert_eq!(handshake(&identity, &source.ca_bundle().unwrap(), "localhost", true), Ok(()));

    // A half-written replacement is refused and the old one stays in use.
    std::fs::write(files.cert(), "-----BEGIN CERTIFICATE-----\n").unwrap();
    identity.upkeep(wall()).unwrap_err();
    std::fs::remove_dir_all(source.dir()).unwrap();
    ServingIdentity::open(source.clone(), names(), wall()).unwrap();
    copy();
    assert_eq!(identity.upkeep(wall()).unwrap(), Upkeep::Reloaded);
    assert_eq!(handshake(&identity, &source.ca_bundle().unwrap(), "localhost", true), Ok(()));
}

#[test]
fn incomplete_or_foreign_files_stop_the_start_with_the_files_name() {
    let pem = authority::new_authority(now()).unwrap();
    let table: [(&[(&str, &str)], &str); 5] = [
        (&[("tls.crt", &pem.cert_pem)], "tls.key"),
        (&[("ca.crt", &pem.cert_pem)], "ca.key"),
        (&[("ca.key", "x")], "ca.crt"),
        (&[("tls.crt", "not pem"), ("tls.key", "not pem")], "tls.crt"),
        (&[("tls.crt", &pem.cert_pem), ("tls.key", "not pem")], "tls.key"),
    ];
    for (given, named) in table {
        let dir = tempfile::tempdir().unwrap();
        for (file, text) in given {
            std::fs::write(dir.path().join(file), text).unwrap();
        }
        let error = ServingIdentity::open(TlsFiles::new(dir.path().to_owned()), names(), now()).unwrap_err();
        assert!(error.to_string().contains(named), "{given:?}: {error}");
    }
}

#[test]
fn empty_files_count_as_absent() {
    let dir = tempfile::tempdir().unwrap();
    for file in ["ca.crt", "ca.key", "tls.crt", "tls.key"] {
        std::fs::write(dir.path().join(file), "\n").unwrap();
    }
    ServingIdentity::open(TlsFiles::new(dir.path().to_owned()), names(), now()).unwrap();
    let files = TlsFiles::new(dir.path().to_owned());
    std::fs::write(files.ca_cert(), "").unwrap();
    assert_eq!(files.ca_bundle().unwrap(), std::fs::read(files.cert()).unwrap());
    std::fs::write(files.cert(), "").unwrap();
    files.ca_bundle().unwrap_err();
}

#[test]
fn a_first_start_that_was_cut_off_is_made_good_with_the_key_that_is_there() {
    let dir = tempfile::tempdir().unwrap();
    let files = TlsFiles::new(dir.path().to_owned());
    let key = authority::new_authority(now()).unwrap().key_pem;
    std::fs::write(files.ca_key(), key.expose()).unwrap();
    let identity = ServingIdentity::open(files.clone(), names(), wall()).unwrap();
    assert_eq!(std::fs::read_to_string(files.ca_key()).unwrap(), key.expose());
    assert_eq!(handshake(&identity, &identity.ca_bundle().unwrap(), "localhost", true), Ok(()));
    // Once something was issued, a CA that is gone is somebody's mistake.
    std::fs::remove_file(files.ca_cert()).unwrap();
    ServingIdentity::open(files, names(), wall()).unwrap_err();
}

#[test]
fn a_certificate_about_to_end_is_named_with_its_end() {
    let dir = tempfile::tempdir().unwrap();
    let files = TlsFiles::new(dir.path().to_owned());
    let identity = ServingIdentity::open(files.clone(), names(), now()).unwrap();
    assert_eq!(identity.ends_soon(now()).unwrap(), None);
    let day = Duration::from_secs(86_400);
    let (path, end) = identity.ends_soon(now() + (SERVING_LIFE - day)).unwrap().unwrap();
    assert_eq!(path, files.cert());
    assert!(end.since(now()) <= SERVING_LIFE, "{end}");
    assert!(identity.ends_soon(now() + SERVING_LIFE * 2).unwrap().is_some(), "one that has ended as well");
    let (path, _) = identity.ends_soon(now() + authority::CA_LIFE + day).unwrap().unwrap();
    assert_eq!(path, files.cert(), "the first that ends");
}
