//! One claimed host with everything a run needs, for the tests of every listener.

mod logs;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{HeaderMap, Request, StatusCode};
use farrier_shared::contract::{BootNonce, HostKey, Time, Token};
use farrier_shared::lifecycle::Credentials;
use farrier_shared::resource::secret::SecretBytes;
use farrier_shared::resource::{Beskar7Machine, HostState, PhysicalHost, Secret};
use http_body_util::BodyExt as _;
use tower::ServiceExt as _;

pub(crate) use logs::capture_logs;

use crate::clock::ManualClock;
use crate::store::Store;

/// User-data of the machine.
pub(crate) const USER_DATA: &[u8] = b"#cloud-config\npassword: the-user-data-secret\n";
/// Id of the run.
pub(crate) const RUN: &str = "run-0001";

/// A store with host `lab/h1`, claimed by machine `m1`.
pub(crate) struct Fixture {
    pub(crate) store: Store,
    pub(crate) clock: ManualClock,
    pub(crate) key: HostKey,
    pub(crate) token: Token,
    pub(crate) nonce: BootNonce,
}

pub(crate) fn start() -> Time {
    "2026-11-29T12:00:00Z".parse().unwrap()
}

pub(crate) fn key(namespace: &str, name: &str) -> HostKey {
    HostKey::new(namespace.parse().unwrap(), name.parse().unwrap())
}

fn object<T: serde::de::DeserializeOwned>(value: serde_json::Value) -> T {
    serde_json::from_value(value).unwrap()
}

pub(crate) fn host(name: &str) -> PhysicalHost {
    object(serde_json::json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2",
        "kind": "PhysicalHost",
        "metadata": { "name": name, "namespace": "lab" },
        "spec": {
            "redfishConnection": { "address": "https://192.0.2.9", "credentialsSecretRef": "bmc" },
            "bootMACAddresses": ["52:54:00:12:34:56"],
        },
    }))
}

pub(crate) fn machine(name: &str) -> Beskar7Machine {
    object(serde_json::json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2",
        "kind": "Beskar7Machine",
        "metadata": { "name": name, "namespace": "lab" },
        "spec": {
            "inspectionImageURL": "http://192.0.2.1:8080/images/inspection",
            "targetImageURL": "http://192.0.2.1:8080/images/os.img",
            "targetImageDigest": format!("sha256:{}", "ab".repeat(32)),
            "hostName": "h1",
            "bootstrap": { "dataSecretName": "m1-user-data" },
        },
    }))
}

impl Fixture {
    /// The host in `state`, credentials fresh.
    pub(crate) async fn in_state(state: HostState) -> Self {
        let store = Store::in_memory().unwrap();
        let machine = store.create(machine("m1")).await.unwrap();
        let data = BTreeMap::from([("value".to_owned(), SecretBytes::new(USER_DATA.to_vec()))]);
        let mut secret = Secret::new(machine.metadata.clone(), data);
        secret.metadata.name = "m1-user-data".parse().unwrap();
        store.create(secret).await.unwrap();
        let mut claimed = host("h1");
        claimed.spec.consumer_ref = Some(farrier_shared::lifecycle::claim::reference_to(&machine));
        claimed.status.state = state;
        claimed.status.run = Some(RUN.to_owned());
        let claimed = store.create(claimed).await.unwrap();
        let (token, nonce) = (Token::from_random([7; 32]), BootNonce::from_random([9; 32]));
        let credentials = Credentials {
            host_uid: claimed.metadata.uid.clone(),
            consumer: "m1".to_owned(),
            consumer_uid: machine.metadata.uid.clone(),
            run: RUN.to_owned(),
            token: token.clone(),
            token_issued_at: start(),
            token_expires_at: start() + Duration::from_secs(3600),
            nonce: nonce.clone(),
            nonce_expires_at: start() + Duration::from_secs(600),
        };
        let key = claimed.metadata.key();
        store.put_credentials(&key, &credentials, None).await.unwrap();
        Self { store, clock: ManualClock::at(start()), key, token, nonce }
    }

    pub(crate) async fn host(&self) -> PhysicalHost {
        self.store.get(&self.key).await.unwrap().unwrap()
    }

    pub(crate) async fn change_host(&self, change: impl FnOnce(&mut PhysicalHost)) {
        let mut host = self.host().await;
        change(&mut host);
        self.store.update(&host).await.unwrap();
    }

    pub(crate) async fn change_credentials(&self, change: impl FnOnce(&mut Credentials)) {
        let old = self.store.credentials(&self.key).await.unwrap().unwrap();
        let mut new = old.value;
        change(&mut new);
        self.store.put_credentials(&self.key, &new, Some(&old.version)).await.unwrap();
    }

    /// Everything a refused request must leave alone.
    pub(crate) async fn everything(&self) -> String {
        let host = serde_json::to_string(&self.host().await).unwrap();
        let signals = self.store.signals(&self.key).await.unwrap();
        let version = self.store.credentials(&self.key).await.unwrap().map(|c| c.version);
        format!("{host} {signals:?} {version:?}")
    }
}

/// An answer, whole.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }
}

/// Sends one request from `peer`.
pub(crate) async fn ask(router: &Router, peer: &str, request: Request<Body>) -> Answer {
    let mut request = request;
    let peer: SocketAddr = format!("{peer}:40000").parse().unwrap();
    request.extensions_mut().insert(ConnectInfo(peer));
    let (parts, body) = router.clone().oneshot(request).await.unwrap().into_parts();
    let body = body.collect().await.unwrap().to_bytes().to_vec();
    Answer { status: parts.status, headers: parts.headers, body }
}
