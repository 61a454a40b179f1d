//! What agents tell: recorded where it counts, limited everywhere.

use super::*;

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
async fn s101_reports_are_limited_in_size_and_must_be_json() {
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
async fn s113_success_and_failure_are_recorded_where_they_count_and_accepted_everywhere() {
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
async fn s102_oversized_and_malformed_small_bodies_still_count() {
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
async fn s053_what_the_first_call_brings_is_accepted_and_there_after_a_restart() {
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
async fn events_of_this_run_are_shown_and_move_nothing() {
    let rig = Rig::in_state(HostState::Deploying).await;
    let before = rig.fixture.everything().await;
    let body = format!(
        r#"{{"event":"Installing","run":"{RUN}","step":"write","bytes":5,"total":9,"message":"a\u001b\u202e\u200bb"}}"#
    );
    assert_eq!(rig.post("events", body).await.status, StatusCode::ACCEPTED);
    let entry = rig.progress.get(&rig.fixture.key).unwrap().event;
    assert_eq!((entry.event, entry.bytes, entry.total), (EventName::Installing, Some(5), Some(9)));
    assert_eq!(entry.message, "ab");
    // Another run's, unknown names, and what is no event.
    assert_eq!(
        rig.post("events", r#"{"event":"Crashed","run":"run-0000"}"#).await.status,
        StatusCode::ACCEPTED
    );
    assert_eq!(rig.progress.get(&rig.fixture.key).unwrap().event.event, EventName::Installing);
    assert_eq!(rig.post("events", r#"{"event":"Something New"}"#).await.status, StatusCode::ACCEPTED);
    assert_eq!(rig.progress.get(&rig.fixture.key).unwrap().event.event, EventName::Unknown);
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

/// The clock of tokio is paused: the wait takes no time.
#[tokio::test(start_paused = true)]
async fn a_body_that_trickles_in_is_not_waited_for_without_end() {
    let trickle = || {
        Body::from_stream(futures_util::stream::unfold((), |()| async {
            tokio::time::sleep(Duration::from_secs(5)).await;
            Some((Ok::<_, std::io::Error>(axum::body::Bytes::from_static(b" ")), ()))
        }))
    };
    let rig = Rig::in_state(HostState::Inspecting).await;
    for segment in ["inspection", "events", "logs"] {
        assert_eq!(rig.post(segment, trickle()).await.status, StatusCode::REQUEST_TIMEOUT, "{segment}");
    }
    assert_eq!(rig.values().await, []);
    // What these two have to say is in their path.
    for segment in ["provisioned", "provision-failed"] {
        assert_eq!(rig.post(segment, trickle()).await.status, StatusCode::ACCEPTED, "{segment}");
    }
}
