//! What of an object is stored, and what is told of it.

use super::*;

#[tokio::test]
async fn bad_objects_are_refused_by_field_and_nothing_is_stored() {
    let (h, m) = (host("h1"), machine("m1"));
    let table = [
        ("hosts/h1", with(&h, "/spec/typo", json!(1)), "spec.typo", "typo"),
        (
            "hosts/h1",
            with(&h, "/spec/redfishConnection/address", json!("ftp://x")),
            "spec.redfishConnection.address",
            "ftp",
        ),
        (
            "hosts/h1",
            with(&h, "/spec/redfishConnection/address", json!("https://u:p@x")),
            "spec.redfishConnection.address",
            "user",
        ),
        ("hosts/h1", with(&h, "/spec/bootMACAddresses", json!(["52:54"])), "spec.bootMACAddresses[0]", "MAC"),
        ("hosts/h1", with(&h, "/kind", json!("Host")), "kind", "PhysicalHost"),
        ("hosts/h2", serde_json::to_value(&h).unwrap(), "metadata.name", "h1"),
        ("hosts/h1", with(&h, "/metadata/namespace", json!("other")), "metadata.namespace", "other"),
        ("hosts/h1", with(&h, "/metadata/name", json!("H1")), "metadata.name", "H1"),
        (
            "hosts/h1",
            with(
                &h,
                "/spec/consumerRef",
                json!({ "kind": "Beskar7Machine", "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "name": "m1" }),
            ),
            "spec.consumerRef",
            "claimed",
        ),
        (
            "machines/m1",
            with(&m, "/spec/targetImageDigest", json!("sha256:AB")),
            "spec.targetImageDigest",
            "64",
        ),
        (
            "machines/m1",
            with(&m, "/spec/targetImageURL", json!("http://a b")),
            "spec.targetImageURL",
            "white space",
        ),
        ("machines/m1", with(&m, "/spec/targetDisk", json!("/dev/sda;reboot")), "spec.targetDisk", "disk"),
        (
            "machines/m1",
            with(&m, "/spec/targetImageDigestURL", json!("https://x/sums")),
            "spec",
            "exactly one",
        ),
        ("machines/m1", with(&m, "/spec/providerID", json!("b7://lab/h1")), "spec.providerID", "host"),
        ("machines/m1", json!({}), "", "missing field"),
        ("machines/m1", json!([]), "", ""),
    ];
    let store = Store::in_memory().unwrap();
    for (path, body, field, problem) in table {
        let answer = send(&store, "PUT", path, &body).await;
        let told = error(&answer);
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{path} {told:?}");
        assert_eq!(told.field, field, "{told:?}");
        assert!(told.problem.contains(problem) && !told.hint.is_empty(), "{problem}: {told:?}");
    }
    assert!(store.list::<PhysicalHost>(None).await.unwrap().is_empty());
    assert!(store.list::<farrier_shared::resource::Beskar7Machine>(None).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_taken_name_a_missing_object_and_an_unknown_kind_have_their_own_answers() {
    let store = Store::in_memory().unwrap();
    let body = serde_json::to_value(host("h1")).unwrap();
    assert_eq!(send(&store, "POST", "hosts", &body).await.status, StatusCode::CREATED);
    let taken = send(&store, "POST", "hosts", &body).await;
    assert_eq!((taken.status, error(&taken).field.as_str()), (StatusCode::CONFLICT, "metadata.name"));
    for path in ["hosts/h9", "machines/h1", "things/h1", "hosts/h9/history", "secrets/h1/history"] {
        assert_eq!(send(&store, "GET", path, &json!(null)).await.status, StatusCode::NOT_FOUND, "{path}");
    }
    assert_eq!(send(&store, "DELETE", "hosts/h9", &json!(null)).await.status, StatusCode::NOT_FOUND);
    assert_eq!(send(&store, "DELETE", "hosts/h1", &json!(null)).await.status, StatusCode::ACCEPTED);
    assert_eq!(send(&store, "GET", "hosts/h1", &json!(null)).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn apply_changes_spec_labels_and_annotations_and_nothing_the_controller_owns() {
    let fixture = Fixture::in_state(HostState::Deploying).await;
    let before = fixture.host().await;
    let mut given = host("h1");
    given.metadata.labels.insert("rack".to_owned(), "1".to_owned());
    given.status.state = HostState::Ready;
    given.status.error_message = "forged".to_owned();
    given.metadata.finalizers.push("forged".to_owned());
    given.spec.boot_mac_addresses.clear();
    let answer = send(&fixture.store, "PUT", "hosts/h1", &serde_json::to_value(&given).unwrap()).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    let after = fixture.host().await;
    assert_eq!(after.status, before.status);
    assert_eq!(after.spec.consumer_ref, before.spec.consumer_ref);
    assert_eq!(
        (after.metadata.uid, after.metadata.finalizers),
        (before.metadata.uid, before.metadata.finalizers)
    );
    assert_eq!(after.metadata.labels["rack"], "1");
    assert!(after.spec.boot_mac_addresses.is_empty());
}

#[tokio::test]
async fn a_new_object_starts_without_the_status_somebody_gave_it() {
    let store = Store::in_memory().unwrap();
    let mut given = host("h1");
    given.status.state = HostState::Available;
    given.metadata.finalizers.push("forged".to_owned());
    send(&store, "PUT", "hosts/h1", &serde_json::to_value(&given).unwrap()).await;
    let stored: PhysicalHost = store.get(&key("lab", "h1")).await.unwrap().unwrap();
    assert_eq!(stored.status.state, HostState::New);
    assert!(stored.metadata.finalizers.is_empty());
}

#[tokio::test]
async fn a_dry_run_checks_and_stores_nothing() {
    let store = Store::in_memory().unwrap();
    let answer =
        send(&store, "PUT", "hosts/h1?dryRun=true", &serde_json::to_value(host("h1")).unwrap()).await;
    assert_eq!(answer.status, StatusCode::CREATED);
    assert!(store.list::<PhysicalHost>(None).await.unwrap().is_empty());
    let bad = with(&host("h1"), "/spec/typo", json!(1));
    assert_eq!(
        send(&store, "PUT", "hosts/h1?dryRun=true", &bad).await.status,
        StatusCode::UNPROCESSABLE_ENTITY
    );
}

#[tokio::test]
async fn secrets_are_shown_by_key_and_size_and_never_by_value() {
    let store = Store::in_memory().unwrap();
    let body = secret(&json!({ "password": "hunter2-hunter2" }));
    let mut shown = vec![send(&store, "PUT", "secrets/s1", &body).await];
    shown.push(send(&store, "PUT", "secrets/s1", &body).await);
    shown.push(send(&store, "GET", "secrets/s1", &json!(null)).await);
    shown.push(send(&store, "GET", "secrets", &json!(null)).await);
    for answer in shown {
        let text = answer.text();
        assert!(answer.status.is_success() && text.contains(r#""password":15"#), "{text}");
        assert!(!text.contains("hunter2") && !text.contains("aHVudGVy"), "{text}");
    }
    let bad = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "s1", "namespace": "lab" }, "data": { "password": "not-base64-hunter2" } });
    let answer = send(&store, "PUT", "secrets/s1", &bad).await;
    assert_eq!(
        (answer.status, error(&answer).field.as_str()),
        (StatusCode::UNPROCESSABLE_ENTITY, "data.password")
    );
    assert!(!answer.text().contains("hunter2"));
}

#[tokio::test]
async fn an_object_under_deletion_is_not_brought_back() {
    let fixture = Fixture::in_state(HostState::Ready).await;
    fixture.change_host(|host| host.metadata.finalizers.push("f".to_owned())).await;
    fixture.store.delete::<PhysicalHost>(&fixture.key).await.unwrap();
    let answer = send(&fixture.store, "PUT", "hosts/h1", &serde_json::to_value(host("h1")).unwrap()).await;
    assert_eq!(answer.status, StatusCode::CONFLICT);
}

#[tokio::test]
async fn half_understood_requests_are_refused_in_the_form_of_every_error() {
    let store = Store::in_memory().unwrap();
    let good = serde_json::to_string(&host("h1")).unwrap();
    let labelled =
        |key: &str, value: &str| with(&host("h1"), "/metadata/labels", json!({ key: value })).to_string();
    let annotated = with(&host("h1"), "/metadata/annotations", json!({ "a\u{7}": "b" })).to_string();
    let table = [
        ("PUT", "namespaces/lab/hosts/h1", format!("{good} {good}"), 422, "", "follows"),
        ("POST", "namespaces/lab/hosts", format!("{good}x"), 422, "", "follows"),
        ("PUT", "namespaces/lab/hosts/h1", labelled("a\u{1b}[31m", "b"), 422, "metadata.labels", "control"),
        ("PUT", "namespaces/lab/hosts/h1", labelled("a", "b\nc"), 422, "metadata.labels", "control"),
        ("PUT", "namespaces/lab/hosts/h1", labelled("", "b"), 422, "metadata.labels", "empty"),
        ("PUT", "namespaces/lab/hosts/h1", annotated, 422, "metadata.annotations", "control"),
        // A mistyped flag must not store what was only to be checked.
        ("PUT", "namespaces/lab/hosts/h1?dryrun=true", good.clone(), 400, "", "dryrun"),
        ("PUT", "namespaces/lab/hosts/h1?dryRun=maybe", good.clone(), 400, "", "dryRun"),
        ("PUT", "namespaces/lab/hosts/h1", " ".repeat(MAX_OBJECT + 1), 413, "", "2097152"),
        ("PATCH", "namespaces/lab/hosts/h1", good, 405, "", "method"),
        ("GET", "namespaces/%ff/hosts", String::new(), 400, "", "UTF-8"),
        ("GET", "watch?hsot=h1", String::new(), 400, "", "hsot"),
    ];
    for (method, path, body, status, field, problem) in table {
        let uri = format!("/apis/v1/{path}");
        let request = Request::builder().method(method).uri(&uri).body(Body::from(body)).unwrap();
        let answer = ask(&api(&store), "127.0.0.1", request).await;
        let told = error(&answer);
        assert_eq!((answer.status.as_u16(), told.field.as_str()), (status, field), "{uri}: {told:?}");
        assert!(told.problem.contains(problem) && !told.hint.is_empty(), "{uri}: {told:?}");
    }
    assert!(store.list::<PhysicalHost>(None).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_boot_script_that_no_firmware_would_take_is_refused_when_it_is_asked_for() {
    let store = Store::in_memory().unwrap();
    let long = |at: &str, len| with(&machine("m1"), at, json!(format!("http://x/{}", "y".repeat(len))));
    let fits = long("/spec/targetImageURL", 950);
    for (object, field, limit) in [
        (long("/spec/targetImageURL", 1700), "spec.targetImageURL", "2047"),
        (long("/spec/inspectionImageURL", 2000), "spec.inspectionImageURL", "4096"),
        (
            with(&fits, "/spec/agentOptions", json!({ "mirrors": format!("http://x/{}", "y".repeat(900)) })),
            "spec.targetImageURL",
            "2047",
        ),
    ] {
        for path in ["machines/m1?dryRun=true", "machines/m1"] {
            let answer = send(&store, "PUT", path, &object).await;
            assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{field}");
            let told = error(&answer);
            assert_eq!(told.field, field);
            assert!(told.problem.contains(limit), "{}", told.problem);
        }
        assert_eq!(send(&store, "POST", "machines", &object).await.status, StatusCode::UNPROCESSABLE_ENTITY);
    }
    assert!(store.list::<Beskar7Machine>(None).await.unwrap().is_empty());
    assert_eq!(send(&store, "PUT", "machines/m1", &fits).await.status, StatusCode::CREATED);

    // What the host brings counts where the host is known.
    let servers = ["a", "b", "c", "d"].map(|n| format!("{}.{}", n.repeat(60), "e".repeat(60))).join(",");
    let mut options = host("h1");
    options.spec.agent_options = [("ntp".to_owned(), servers)].into_iter().collect();
    store.create(options).await.unwrap();
    let fuller = long("/spec/targetImageURL", 1100);
    assert_eq!(error(&send(&store, "PUT", "machines/m1", &fuller).await).field, "spec.targetImageURL");
    let elsewhere = with(&fuller, "/spec/hostName", json!("h2"));
    assert_eq!(send(&store, "PUT", "machines/m1", &elsewhere).await.status, StatusCode::OK);
}
