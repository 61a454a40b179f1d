//! What agents and strangers get from the callback listener, and what it leaves behind.

use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use farrier_shared::contract::binding::Bound;
use farrier_shared::contract::callback::EventName;
use farrier_shared::lifecycle::signal::SignalKey;
use farrier_shared::resource::{Beskar7Machine, HostState, Resource as _, Secret};
use sha2::{Digest as _, Sha256};

use super::*;
use crate::fixture::{Answer, Fixture, RUN, USER_DATA, ask, host, key};

struct Rig {
    fixture: Fixture,
    router: Router,
    progress: Progress,
    dir: tempfile::TempDir,
}

impl Rig {
    async fn in_state(state: HostState) -> Self {
        let fixture = Fixture::in_state(state).await;
        let (progress, dir) = (Progress::new(), tempfile::tempdir().unwrap());
        let callbacks = Callbacks {
            store: fixture.store.clone(),
            progress: progress.clone(),
            clock: Arc::new(fixture.clock.clone()),
            timings: Arc::default(),
            logs_dir: dir.path().join("logs"),
        };
        Self { fixture, router: router(callbacks), progress, dir }
    }

    async fn call(
        &self,
        method: &str,
        segment: &str,
        authorization: Option<&str>,
        body: impl Into<Body>,
    ) -> Answer {
        self.call_host(method, segment, "lab/h1", authorization, body).await
    }

    async fn call_host(
        &self,
        method: &str,
        segment: &str,
        host: &str,
        authorization: Option<&str>,
        body: impl Into<Body>,
    ) -> Answer {
        let mut request = Request::builder().method(method).uri(format!("/api/v1/{segment}/{host}"));
        if let Some(value) = authorization {
            request = request.header("authorization", value);
        }
        ask(&self.router, "192.0.2.50", request.body(body.into()).unwrap()).await
    }

    fn bearer(&self) -> String {
        format!("Bearer {}", self.fixture.token.expose())
    }

    async fn post(&self, segment: &str, body: impl Into<Body>) -> Answer {
        self.call("POST", segment, Some(&self.bearer()), body).await
    }

    async fn values(&self) -> Vec<(SignalKey, String)> {
        let signals = self.fixture.store.signals(&self.fixture.key).await.unwrap();
        signals.into_iter().map(|s| (s.key, s.value)).collect()
    }
}

const ROUTES: [(&str, &str); 6] = [
    ("POST", "inspection"),
    ("GET", "bootstrap"),
    ("POST", "provisioned"),
    ("POST", "provision-failed"),
    ("POST", "events"),
    ("POST", "logs"),
];

fn refused(answer: &Answer) -> bool {
    let names: Vec<&str> = answer.headers.keys().map(axum::http::HeaderName::as_str).collect();
    answer.status == StatusCode::UNAUTHORIZED
        && answer.body == UNAUTHORIZED_BODY.as_bytes()
        && names.iter().all(|n| matches!(*n, "content-type" | "content-length"))
        && answer.headers["content-type"] == "application/json"
}

#[tokio::test]
async fn every_bad_bearer_gets_the_same_bytes_and_changes_nothing() {
    let rig = Rig::in_state(HostState::Deploying).await;
    rig.fixture.store.create(host("h2")).await.unwrap();
    let good = rig.fixture.token.expose().to_owned();
    let before = rig.fixture.everything().await;
    let wrong = "A".repeat(43);
    let headers = [
        None,
        Some(String::new()),
        Some("Bearer".to_owned()),
        Some("Bearer ".to_owned()),
        Some(format!("Basic {good}")),
        Some(format!("Bearer {wrong}")),
        Some(format!("Bearer {good}x")),
        Some(format!("Bearer {} {}", &good[..20], &good[20..])),
        Some(good.clone()),
        Some(format!("Bearer {}", rig.fixture.nonce.expose())),
    ];
    for (method, segment) in ROUTES {
        for header in &headers {
            let answer = rig.call(method, segment, header.as_deref(), "{}").await;
            assert!(refused(&answer), "{segment} {header:?}: {answer:?}");
        }
        // A good token is good for one host, and hosts that are not there look like hosts that are.
        for other in ["lab/h2", "lab/none", "other/h1", "lab/H1", "lab/h1%2f.."] {
            let answer = rig.call_host(method, segment, other, Some(&rig.bearer()), "{}").await;
            assert!(refused(&answer), "{segment} {other}: {answer:?}");
        }
    }
    assert_eq!(rig.fixture.everything().await, before);
    assert!(rig.progress.get(&rig.fixture.key).is_none());
    assert!(!rig.dir.path().join("logs").exists());
}

#[tokio::test]
async fn a_token_ends_with_its_time_its_claim_and_its_host() {
    type Change = fn(&mut farrier_shared::lifecycle::Credentials);
    let changes: [(&str, Change); 4] = [
        ("expired this second", |c| c.token_expires_at = crate::fixture::start()),
        ("minted for another machine", |c| c.consumer = "m2".to_owned()),
        ("of another host object", |c| c.host_uid = "other".to_owned()),
        ("replaced", |c| c.token = farrier_shared::contract::Token::from_random([1; 32])),
    ];
    for (what, change) in changes {
        let rig = Rig::in_state(HostState::Deploying).await;
        rig.fixture.change_credentials(change).await;
        let before = rig.fixture.everything().await;
        for (method, segment) in ROUTES {
            assert!(
                refused(&rig.call(method, segment, Some(&rig.bearer()), "{}").await),
                "{segment}: {what}"
            );
        }
        assert_eq!(rig.fixture.everything().await, before, "{what}");
    }
    let rig = Rig::in_state(HostState::Deploying).await;
    rig.fixture.change_host(|host| host.spec.consumer_ref = None).await;
    assert!(refused(&rig.post("provisioned", "").await));
}

#[tokio::test]
async fn the_scheme_may_be_spelt_in_any_case_and_the_token_padded() {
    let rig = Rig::in_state(HostState::Deploying).await;
    for scheme in ["bearer ", "BEARER   "] {
        let header = format!("{scheme}{} ", rig.fixture.token.expose());
        let answer = rig.call("POST", "provisioned", Some(&header), "").await;
        assert_eq!(
            (answer.status, answer.text().as_str()),
            (StatusCode::ACCEPTED, ACCEPTED_BODY),
            "{scheme}"
        );
    }
}

#[tokio::test]
async fn wrong_methods_are_answered_as_such() {
    let rig = Rig::in_state(HostState::Deploying).await;
    for (method, segment) in ROUTES {
        let other = if method == "GET" { "POST" } else { "GET" };
        let answer = rig.call(other, segment, Some(&rig.bearer()), "").await;
        assert_eq!(answer.status, StatusCode::METHOD_NOT_ALLOWED, "{segment}");
    }
}

#[tokio::test]
async fn a_report_is_kept_with_a_binding_over_its_very_text() {
    let rig = Rig::in_state(HostState::Inspecting).await;
    let body = r#"{"manufacturer":"Acme","unknown":1,"hostName":"other","cpus":[{"cores":4}]}"#;
    let answer = rig.post("inspection", body).await;
    assert_eq!((answer.status, answer.text().as_str()), (StatusCode::ACCEPTED, ACCEPTED_BODY));
    let signals = rig.fixture.store.signals(&rig.fixture.key).await.unwrap();
    let [signal] = signals.as_slice() else { panic!("{signals:?}") };
    let report = signal.report.as_deref().unwrap();
    assert!(report.contains(r#""timestamp":"2026-11-29T12:00:00Z""#), "{report}");
    let credentials = rig.fixture.store.credentials(&rig.fixture.key).await.unwrap().unwrap().value;
    let stored = rig.fixture.host().await;
    let bound = Bound {
        key: "infrastructure.cluster.x-k8s.io/inspection-result-ref",
        host: &rig.fixture.key,
        host_uid: &stored.metadata.uid,
        consumer_uid: &credentials.consumer_uid,
        digest: &hex::encode(Sha256::digest(report)),
        value: "h1-inspection-result",
    };
    assert!(signal.binding.as_ref().unwrap().verify(&credentials.token, &credentials.nonce, &bound));
    assert_eq!(stored.status.inspection_report, None);
}

#[tokio::test]
async fn reports_are_limited_in_size_and_must_be_json() {
    let rig = Rig::in_state(HostState::Inspecting).await;
    let sized = |len: usize| format!("{{\"model\":\"{}\"}}", "x".repeat(len - 12));
    assert_eq!(rig.post("inspection", sized(MAX_INSPECTION_BODY)).await.status, StatusCode::ACCEPTED);
    assert_eq!(
        rig.post("inspection", sized(MAX_INSPECTION_BODY + 1)).await.status,
        StatusCode::PAYLOAD_TOO_LARGE
    );
    for bad in ["", "{", "[]", "not json"] {
        let answer = rig.post("inspection", bad).await;
        assert_eq!(
            (answer.status, answer.text().as_str()),
            (StatusCode::BAD_REQUEST, "Invalid JSON"),
            "{bad:?}"
        );
    }
}

#[tokio::test]
async fn success_and_failure_are_recorded_where_they_count_and_accepted_everywhere() {
    let recorded = |state| matches!(state, HostState::Deploying | HostState::Inspecting);
    let states =
        [HostState::InUse, HostState::Inspecting, HostState::Deploying, HostState::Ready, HostState::Error];
    for state in states {
        let rig = Rig::in_state(state).await;
        let failed = rig.post("provision-failed", r#"{"reason":"disk\u0007 gone"}"#).await;
        assert_eq!(failed.status, StatusCode::ACCEPTED, "{state}");
        let expected = "inspector reported deploy failure: disk gone".to_owned();
        let waiting = rig.values().await;
        assert_eq!(
            waiting.contains(&(SignalKey::ProvisionFailed, expected)),
            recorded(state),
            "{state} {waiting:?}"
        );
        let done = rig.post("provisioned", "not json at all").await;
        assert_eq!(done.status, StatusCode::ACCEPTED, "{state}");
        let waiting = rig.values().await;
        let done = waiting.contains(&(SignalKey::Provisioned, "provisioned".to_owned()));
        assert_eq!(done, recorded(state) || state == HostState::Ready, "{state} {waiting:?}");
        assert_eq!(rig.fixture.host().await.status.state, state);
    }
}

#[tokio::test]
async fn oversized_and_malformed_small_bodies_still_count() {
    let rig = Rig::in_state(HostState::Deploying).await;
    let huge = format!(r#"{{"reason":"{}"}}"#, "x".repeat(MAX_SMALL_BODY_PLUS));
    for body in [huge.as_str(), "nonsense", ""] {
        assert_eq!(rig.post("provision-failed", body.to_owned()).await.status, StatusCode::ACCEPTED);
        let generic = "inspector reported deploy failure: no details provided".to_owned();
        assert_eq!(rig.values().await, [(SignalKey::ProvisionFailed, generic)]);
    }
    assert_eq!(rig.post("provisioned", huge).await.status, StatusCode::ACCEPTED);
}

const MAX_SMALL_BODY_PLUS: usize = (64 << 10) + 1;

#[tokio::test]
async fn what_was_accepted_is_there_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let rig = Rig::in_state(HostState::Deploying).await;
    // The same objects on disk, then closed without any goodbye right after the answer.
    let store = Store::open(dir.path()).unwrap();
    let machine: Beskar7Machine = rig.fixture.store.get(&key("lab", "m1")).await.unwrap().unwrap();
    let machine = store.create(machine).await.unwrap();
    let created = store.create(rig.fixture.host().await).await.unwrap();
    let mut credentials = rig.fixture.store.credentials(&rig.fixture.key).await.unwrap().unwrap().value;
    credentials.host_uid.clone_from(&created.metadata.uid);
    credentials.consumer_uid.clone_from(&machine.metadata().uid);
    store.put_credentials(&rig.fixture.key, &credentials, None).await.unwrap();
    let callbacks = Callbacks {
        store,
        progress: Progress::new(),
        clock: Arc::new(rig.fixture.clock.clone()),
        timings: Arc::default(),
        logs_dir: dir.path().join("logs"),
    };
    let on_disk = Rig { router: router(callbacks), ..rig };
    assert_eq!(on_disk.post("provisioned", "").await.status, StatusCode::ACCEPTED);
    // Read by another connection while the first still holds the directory: only what is on disk counts.
    let copy = tempfile::tempdir().unwrap();
    for file in ["farrier.db", "farrier.db-wal"] {
        std::fs::copy(dir.path().join(file), copy.path().join(file)).unwrap();
    }
    let reopened = Store::open(copy.path()).unwrap();
    let signals = reopened.signals(&on_disk.fixture.key).await.unwrap();
    assert_eq!(signals.iter().map(|s| s.key).collect::<Vec<_>>(), [SignalKey::Provisioned]);
}

#[tokio::test]
async fn user_data_is_served_raw_and_never_cached() {
    let rig = Rig::in_state(HostState::Deploying).await;
    let answer = rig.call("GET", "bootstrap", Some(&rig.bearer()), "").await;
    assert_eq!((answer.status, answer.body.as_slice()), (StatusCode::OK, USER_DATA));
    assert_eq!(answer.headers["content-type"], "application/octet-stream");
    assert_eq!(answer.headers["cache-control"], "no-store");
    assert_eq!(answer.headers["pragma"], "no-cache");
}

#[tokio::test]
async fn user_data_that_cannot_be_found_is_not_found_whatever_the_cause() {
    let secret_key = key("lab", "m1-user-data");
    for cause in 0..5 {
        let rig = Rig::in_state(HostState::Deploying).await;
        let store = &rig.fixture.store;
        let mut machine: Beskar7Machine = store.get(&key("lab", "m1")).await.unwrap().unwrap();
        let mut secret: Secret = store.get(&secret_key).await.unwrap().unwrap();
        match cause {
            0 => store.delete::<Secret>(&secret_key).await.unwrap(),
            1 => store.delete::<Beskar7Machine>(&key("lab", "m1")).await.unwrap(),
            2 => {
                machine.spec.bootstrap = None;
                store.update(&machine).await.unwrap();
            }
            3 => {
                secret.data.clear();
                store.update(&secret).await.unwrap();
            }
            _ => {
                secret
                    .data
                    .insert("value".to_owned(), farrier_shared::resource::secret::SecretBytes::new(vec![]));
                store.update(&secret).await.unwrap();
            }
        }
        let answer = rig.call("GET", "bootstrap", Some(&rig.bearer()), "").await;
        assert_eq!(
            (answer.status, answer.text().as_str()),
            (StatusCode::NOT_FOUND, "not found"),
            "cause {cause}"
        );
    }
    let rig = Rig::in_state(HostState::Deploying).await;
    let mut secret: Secret = rig.fixture.store.get(&secret_key).await.unwrap().unwrap();
    let large = farrier_shared::resource::secret::SecretBytes::new(vec![b'x'; (1 << 20) + 1]);
    secret.data.insert("value".to_owned(), large);
    rig.fixture.store.update(&secret).await.unwrap();
    let answer = rig.call("GET", "bootstrap", Some(&rig.bearer()), "").await;
    assert_eq!(answer.status, StatusCode::INTERNAL_SERVER_ERROR);
}

#[tokio::test]
async fn events_of_this_run_are_shown_and_move_nothing() {
    let rig = Rig::in_state(HostState::Deploying).await;
    let before = rig.fixture.everything().await;
    let body = format!(
        r#"{{"event":"Installing","run":"{RUN}","step":"write","bytes":5,"total":9,"message":"a\u001bb"}}"#
    );
    assert_eq!(rig.post("events", body).await.status, StatusCode::ACCEPTED);
    let entry = rig.progress.get(&rig.fixture.key).unwrap();
    assert_eq!((entry.event, entry.bytes, entry.total), (EventName::Installing, Some(5), Some(9)));
    assert_eq!(entry.message, "ab");
    // Another run's, unknown names, and what is no event.
    assert_eq!(
        rig.post("events", r#"{"event":"Crashed","run":"run-0000"}"#).await.status,
        StatusCode::ACCEPTED
    );
    assert_eq!(rig.progress.get(&rig.fixture.key).unwrap().event, EventName::Installing);
    assert_eq!(rig.post("events", r#"{"event":"Something New"}"#).await.status, StatusCode::ACCEPTED);
    assert_eq!(rig.progress.get(&rig.fixture.key).unwrap().event, EventName::Unknown);
    assert_eq!(rig.post("events", "{}").await.status, StatusCode::BAD_REQUEST);
    assert_eq!(rig.fixture.everything().await, before);
}

#[tokio::test]
async fn the_newest_logs_are_kept_under_the_hosts_name_alone() {
    let rig = Rig::in_state(HostState::Error).await;
    for n in 0..6 {
        assert_eq!(rig.post("logs", format!("bundle {n}")).await.status, StatusCode::ACCEPTED);
    }
    let dir = rig.dir.path().join("logs/lab");
    let mut files: Vec<(String, String)> = std::fs::read_dir(&dir)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|e| (e.file_name().into_string().unwrap(), std::fs::read_to_string(e.path()).unwrap()))
        .collect();
    files.sort();
    let expected = [("h1.log", "5"), ("h1.log.1", "4"), ("h1.log.2", "3"), ("h1.log.3", "2")];
    let expected: Vec<(String, String)> =
        expected.iter().map(|(file, n)| ((*file).to_owned(), format!("bundle {n}"))).collect();
    assert_eq!(files, expected);
    let large = vec![b'x'; MAX_LOGS_BODY + 1];
    assert_eq!(rig.post("logs", large).await.status, StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(std::fs::read_to_string(dir.join("h1.log")).unwrap(), "bundle 5");
}

#[tokio::test]
async fn a_token_cut_while_a_report_is_on_its_way_signs_nothing() {
    let rig = Rig::in_state(HostState::Deploying).await;
    // The handler waits for the body between its two looks at the credentials.
    let (send, receive) = tokio::sync::oneshot::channel::<()>();
    let body = Body::from_stream(futures_util::stream::once(async {
        let _ = receive.await;
        Ok::<_, std::io::Error>(axum::body::Bytes::new())
    }));
    let (bearer, cut) = (rig.bearer(), async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        rig.fixture.change_credentials(|c| c.token_expires_at = crate::fixture::start()).await;
        send.send(()).unwrap();
    });
    let (answer, ()) = tokio::join!(rig.call("POST", "provisioned", Some(&bearer), body), cut);
    assert_eq!(answer.status, StatusCode::INTERNAL_SERVER_ERROR);
    assert_eq!(rig.values().await, []);
}

#[tokio::test]
async fn logs_hold_reasons_and_no_secrets() {
    let (logs, guard) = crate::fixture::capture_logs();
    let rig = Rig::in_state(HostState::Deploying).await;
    let wrong = format!("Bearer {}", "B".repeat(43));
    for (method, segment) in ROUTES {
        rig.call(method, segment, Some(&wrong), "{}").await;
        rig.call(method, segment, Some(&rig.bearer()), r#"{"event":"Alive","reason":"x"}"#).await;
    }
    drop(guard);
    let logs = logs.text();
    assert!(logs.contains("does not match") && logs.contains("callback accepted"), "{logs}");
    let secrets =
        [rig.fixture.token.expose(), rig.fixture.nonce.expose(), "the-user-data-secret", &wrong[7..]];
    for secret in secrets {
        assert!(!logs.contains(secret), "{logs}");
    }
}
