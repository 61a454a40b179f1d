//! The store's promises, each on both places a SQLite store can be where that matters.

mod disk;
mod objects;
mod records;

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;

use farrier_shared::contract::{BootNonce, HostKey, Name, Time, Token};
use farrier_shared::lifecycle::credentials::Credentials;
use farrier_shared::lifecycle::history::HistoryEntry;
use farrier_shared::lifecycle::signal::{Signal, SignalKey};
use farrier_shared::resource::host::RedfishConnection;
use farrier_shared::resource::secret::SecretBytes;
use farrier_shared::resource::{
    HostState, ObjectMeta, PhysicalHost, PhysicalHostSpec, Resource as _, Secret,
};

use super::{Change, HISTORY_LIMIT, Scope, Store, StoreError, Term};

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

fn key(text: &str) -> HostKey {
    HostKey::new(name("default"), name(text))
}

fn host(text: &str) -> PhysicalHost {
    let connection = RedfishConnection {
        address: "https://192.0.2.1".parse().unwrap(),
        credentials_secret_ref: name("bmc"),
        insecure_skip_verify: None,
        ca_bundle_secret_ref: None,
    };
    let spec = PhysicalHostSpec {
        redfish_connection: connection,
        consumer_ref: None,
        boot_mac_addresses: vec![],
        boot_mode: None,
        agent_options: Default::default(),
    };
    PhysicalHost::new(ObjectMeta::new(name("default"), name(text)), spec)
}

fn signal(value: &str) -> Signal {
    Signal { key: SignalKey::InspectionRequest, value: value.to_owned(), binding: None, report: None }
}

fn credentials(run: &str) -> Credentials {
    Credentials {
        host_uid: "uid".to_owned(),
        consumer: "machine".to_owned(),
        consumer_uid: String::new(),
        run: run.to_owned(),
        token: Token::from_random([1; 32]),
        token_issued_at: Time::from_unix(0),
        token_expires_at: Time::from_unix(3600),
        nonce: BootNonce::from_random([2; 32]),
        nonce_expires_at: Time::from_unix(600),
    }
}

fn entry(number: usize) -> HistoryEntry {
    HistoryEntry {
        at: Time::from_unix(0),
        actor: "test".to_owned(),
        event: format!("Event{number}"),
        from: String::new(),
        to: String::new(),
        reason: String::new(),
        run: None,
    }
}
