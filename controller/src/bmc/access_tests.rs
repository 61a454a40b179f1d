//! The access policy, rule by rule in its order.

use std::collections::BTreeMap;

use farrier_shared::contract::Name;
use farrier_shared::resource::ObjectMeta;
use farrier_shared::resource::secret::SecretBytes;

use super::*;

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

fn secret(text: &str, annotations: &[(&str, &str)], data: &[(&str, &[u8])]) -> Secret {
    let mut metadata = ObjectMeta::new(name("default"), name(text));
    metadata.annotations =
        annotations.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect::<BTreeMap<_, _>>();
    let data = data.iter().map(|(k, v)| ((*k).to_owned(), SecretBytes::new(v.to_vec()))).collect();
    Secret::new(metadata, data)
}

const LOGIN: &[(&str, &[u8])] = &[("username", b"admin"), ("password", b"hunter2")];

fn connection(address: &str) -> RedfishConnection {
    RedfishConnection {
        address: address.parse().unwrap(),
        credentials_secret_ref: name("bmc"),
        insecure_skip_verify: None,
        ca_bundle_secret_ref: None,
    }
}

fn refusal(result: Result<HostAccess, AccessError>) -> Refusal {
    match result {
        Err(AccessError::Refused { refusal, message }) => {
            assert!(!message.contains("hunter2") && !message.contains("admin"), "{message}");
            refusal
        }
        other => panic!("{other:?}"),
    }
}

fn certificate() -> Vec<u8> {
    let key = rcgen::KeyPair::generate().unwrap();
    rcgen::CertificateParams::new(vec!["ca".to_owned()])
        .unwrap()
        .self_signed(&key)
        .unwrap()
        .pem()
        .into_bytes()
}

#[test]
fn a_listed_address_with_a_login_is_allowed_and_shows_no_secret() {
    let bmc = secret("bmc", &[(ADDRESSES, "192.0.2.0/24")], LOGIN);
    let access = authorize(&connection("https://192.0.2.7:8443"), Some(&bmc), None).unwrap();
    assert_eq!(access.trust, Trust::System);
    assert_eq!(access.password.as_str(), "hunter2");
    let shown = format!("{access:?}");
    assert!(shown.contains("192.0.2.7:8443") && !shown.contains("hunter2") && !shown.contains("admin"));
}

#[test]
fn each_missing_consent_is_refused_with_its_reason() {
    use Refusal::{CredentialsNotAuthorized as Unauthorized, MissingCredentials};
    let listed = (ADDRESSES, "192.0.2.7");
    let https = "https://192.0.2.7";
    for (address, annotations, data, expected) in [
        (https, vec![], LOGIN, Unauthorized),
        (https, vec![(ADDRESSES, "")], LOGIN, Unauthorized),
        (https, vec![(ADDRESSES, "192.0.2.7 0.0.0.0/0")], LOGIN, Unauthorized),
        (https, vec![(ADDRESSES, "192.0.2.8")], LOGIN, Unauthorized),
        ("http://192.0.2.7", vec![listed], LOGIN, Unauthorized),
        ("http://192.0.2.7", vec![listed, (INSECURE_TRANSPORT, "True")], LOGIN, Unauthorized),
        ("http://192.0.2.7", vec![listed, (INSECURE_TRANSPORT, "1")], LOGIN, Unauthorized),
        (https, vec![listed], &LOGIN[..1], MissingCredentials),
        (https, vec![listed], &LOGIN[1..], MissingCredentials),
        (https, vec![listed], &[("username", b"".as_slice()), ("password", b"x")], MissingCredentials),
    ] {
        let bmc = secret("bmc", &annotations, data);
        assert_eq!(
            refusal(authorize(&connection(address), Some(&bmc), None)),
            expected,
            "{address} {annotations:?}"
        );
    }
    assert_eq!(refusal(authorize(&connection(https), None, None)), MissingCredentials);
}

#[test]
fn s129_plain_http_is_allowed_by_exactly_true() {
    let bmc = secret("bmc", &[(ADDRESSES, "192.0.2.7"), (INSECURE_TRANSPORT, "true")], LOGIN);
    let access = authorize(&connection("http://192.0.2.7"), Some(&bmc), None).unwrap();
    assert_eq!(access.trust, Trust::System);
}

#[test]
fn s129_s130_unverified_tls_needs_consent_and_excludes_a_ca() {
    let mut unverified = connection("https://192.0.2.7");
    unverified.insecure_skip_verify = Some(true);
    let silent = secret("bmc", &[(ADDRESSES, "192.0.2.7")], LOGIN);
    assert_eq!(refusal(authorize(&unverified, Some(&silent), None)), Refusal::CredentialsNotAuthorized);
    let consenting =
        secret("bmc", &[(ADDRESSES, "192.0.2.7"), (INSECURE_TRANSPORT, "true"), (CA_SECRET, "ca")], LOGIN);
    assert_eq!(authorize(&unverified, Some(&consenting), None).unwrap().trust, Trust::Nothing);
    unverified.ca_bundle_secret_ref = Some(name("ca"));
    assert_eq!(refusal(authorize(&unverified, Some(&consenting), None)), Refusal::InsecureCaBundleConflict);
}

#[test]
fn s130_a_ca_is_taken_only_from_the_secret_the_credentials_name() {
    let mut own_ca = connection("https://192.0.2.7");
    own_ca.ca_bundle_secret_ref = Some(name("ca"));
    let bmc = secret("bmc", &[(ADDRESSES, "192.0.2.7"), (CA_SECRET, "other")], LOGIN);
    let pem = certificate();
    let ca = secret("ca", &[], &[("ca.crt", &pem)]);
    let refused = authorize(&own_ca, Some(&bmc), Some(&ca)).unwrap_err();
    assert!(!refused.to_string().contains("other"), "{refused}");
    assert_eq!(refusal(Err(refused)), Refusal::CredentialsNotAuthorized);

    let bmc = secret("bmc", &[(ADDRESSES, "192.0.2.7"), (CA_SECRET, "ca")], LOGIN);
    assert_eq!(authorize(&own_ca, Some(&bmc), Some(&ca)).unwrap().trust, Trust::Only(pem.clone()));
    let fallback = secret("ca", &[], &[("ca.crt", b""), ("tls.crt", &pem)]);
    assert_eq!(authorize(&own_ca, Some(&bmc), Some(&fallback)).unwrap().trust, Trust::Only(pem));
    for ca in [None, Some(&secret("ca", &[], &[])), Some(&secret("ca", &[], &[("ca.crt", b"not PEM")]))] {
        assert_eq!(refusal(authorize(&own_ca, Some(&bmc), ca)), Refusal::CaBundleFetchFailed);
    }
}

#[test]
fn an_address_that_could_mislead_is_refused_before_its_consent_is_looked_at() {
    let bmc = secret("bmc", &[(ADDRESSES, "bmc.lab.example.com")], LOGIN);
    for address in [
        "https://admin@bmc.lab.example.com",
        "https://:pw@bmc.lab.example.com",
        "https://bmc.lab.example.com/?x=1",
        "https://bmc.lab.example.com/#x",
        "https://bmc.lab.example.com.",
        "https://bmc_1.lab.example.com",
    ] {
        let result = authorize(&connection(address), Some(&bmc), None);
        assert!(matches!(result, Err(AccessError::Address { .. })), "{address}: {result:?}");
    }
}
