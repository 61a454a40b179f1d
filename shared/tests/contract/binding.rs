//! Bindings against values computed independently, with Python's hmac and hashlib.

use farrier_shared::contract::binding::{Binding, Bound};
use farrier_shared::contract::{BootNonce, HostKey, Token};
use farrier_shared::lifecycle::SignalKey;
use proptest::prelude::*;
use sha2::{Digest as _, Sha256};

fn token() -> Token {
    "test-token-0123456789abcdef0000000000000000".parse().unwrap()
}

fn nonce() -> BootNonce {
    "test-nonce-0123456789abcdef0000000000000000".parse().unwrap()
}

fn sign(key: SignalKey, value: &str, digest: &str, consumer_uid: &str) -> String {
    let host = HostKey::new("contract-test".parse().unwrap(), "host-01".parse().unwrap());
    let bound =
        Bound { key: key.annotation(), host: &host, host_uid: "host-uid-1", consumer_uid, digest, value };
    Binding::sign(&token(), &nonce(), &bound).as_str().to_owned()
}

#[test]
fn known_answers() {
    let report = hex::encode(Sha256::digest(br#"{"cpus":[]}"#));
    let failure = "inspector reported deploy failure: image digest mismatch";
    let table = [
        (
            SignalKey::InspectionRequest,
            "inspect",
            "",
            "machine-uid-1",
            "7729354ffb441827094132bb1d368ba13800beb9052fdf99cacad9d7a13739f9",
        ),
        (
            SignalKey::InspectionRequest,
            "inspect",
            "",
            "",
            "3dbef80fe2d506b9f81bd743935343dab7e68a29370c93bb113963b1278727ba",
        ),
        (
            SignalKey::Provisioned,
            "provisioned",
            "",
            "machine-uid-1",
            "d873f5275e5e62270e689ef979b216a976977ff7777586f29fb5c9b0ceaf674e",
        ),
        (
            SignalKey::ProvisionFailed,
            failure,
            "",
            "machine-uid-1",
            "f05715c63770835fa3a08c50cf597ac7ae53da1c6aa5bc6534cfb0d2be243ecf",
        ),
        (
            SignalKey::InspectionResult,
            "host-01-inspection-result",
            report.as_str(),
            "machine-uid-1",
            "8fea4ec663d33f34fc13d87ad490db7001ec928b6bc9ca430233c720b0aa1bb6",
        ),
    ];
    for (key, value, digest, consumer_uid, expected) in table {
        assert_eq!(sign(key, value, digest, consumer_uid), expected, "{key:?} {value}");
    }
}

#[test]
fn the_token_hash_is_of_its_text() {
    let expected = "0243a54d92951ab8f10d920134e8a43f2a30cdb242c5b136f95c0c8182b6c639";
    assert_eq!(token().sha256_hex(), expected);
}

proptest! {
    /// Changing any one covered field changes the verdict.
    #[test]
    fn every_field_is_covered(
        uid in "[a-z0-9-]{0,36}", consumer in "[a-z0-9-]{0,36}", digest in "[0-9a-f]{0,64}", value in ".{0,40}",
        which in 0..5_usize, other in "[a-z]{1,8}",
    ) {
        let host = HostKey::new("ns".parse().unwrap(), "host".parse().unwrap());
        let key = SignalKey::Provisioned.annotation();
        let bound = Bound { key, host: &host, host_uid: &uid, consumer_uid: &consumer, digest: &digest, value: &value };
        let binding = Binding::sign(&token(), &nonce(), &bound);
        prop_assert!(binding.verify(&token(), &nonce(), &bound));
        prop_assert!(!binding.verify(&token(), &"A".repeat(43).parse().unwrap(), &bound));
        prop_assert!(!binding.verify(&"A".repeat(43).parse().unwrap(), &nonce(), &bound));
        let changed = format!("{other}{value}");
        let forged = match which {
            0 => Bound { key: SignalKey::ProvisionFailed.annotation(), ..bound },
            1 => Bound { host_uid: &changed, ..bound },
            2 => Bound { consumer_uid: &changed, ..bound },
            3 => Bound { digest: &changed, ..bound },
            _ => Bound { value: &changed, ..bound },
        };
        let same = format!("{bound:?}") == format!("{forged:?}");
        prop_assert_eq!(binding.verify(&token(), &nonce(), &forged), same);
    }
}
