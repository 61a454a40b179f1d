//! Who is turned away, and that nobody can tell why.

use super::*;

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
async fn s101_every_bad_bearer_gets_the_same_bytes_and_changes_nothing() {
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
        for other in ["lab/h2", "lab/none", "other/h1", "lab/H1", "lab/h1%2f..", "lab/%ff"] {
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
