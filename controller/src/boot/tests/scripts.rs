//! Who gets a host's script, how often, and what is in it.

use super::*;

#[tokio::test]
async fn the_first_fetch_gets_the_script_and_consumes_the_nonce() {
    let rig = Rig::with("PEM", "", true).await;
    let answer = rig.get(CLIENT, &format!("{}?mac=52:54:00:AB:CD:EF", rig.path())).await;
    assert_eq!(answer.status, StatusCode::OK);
    assert_eq!(answer.headers["content-type"], "text/plain; charset=utf-8");
    let expected = format!(
        "#!ipxe\nkernel http://192.0.2.1:8080/images/inspection/vmlinuz beskar7.api=https://192.0.2.1:8082 \
         beskar7.namespace=lab beskar7.host=h1 beskar7.token={} \
         beskar7.target=http://192.0.2.1:8080/images/os.img beskar7.target-digest=sha256:{} \
         beskar7.provider-id=b7://lab/h1 beskar7.ca=UEVN BOOTIF=01-52-54-00-ab-cd-ef\n\
         initrd http://192.0.2.1:8080/images/inspection/initrd.img\nboot\n",
        rig.fixture.token.expose(),
        "ab".repeat(32),
    );
    assert_eq!(answer.text(), expected);
    let record = rig.fixture.host().await.status.bootstrap.unwrap();
    assert_eq!(record.boot_nonce_consumed_hash, rig.fixture.nonce.sha256_hex());
    assert!(record.boot_nonce_consumed_at.is_some());
    assert_eq!(record.boot_nonce_consumed_client_hash.len(), 64);
}

#[tokio::test]
async fn our_own_parameters_are_additive() {
    let rig = Rig::new().await;
    let script = rig.get(CLIENT, &format!("{}?mac=nonsense&platform=efi&other=1", rig.path())).await.text();
    let words = format!(
        "beskar7.ca=UEVN farrier.run=run-0001 farrier.time={} loglevel=5 initrd=initrd.img farrier.end=1\n",
        ordered(&rig).await
    );
    assert!(script.contains(&words), "{script}");
    assert!(!script.contains("BOOTIF"));
}

/// When the rig's run was ordered, in seconds.
async fn ordered(rig: &Rig) -> i64 {
    let stored = rig.fixture.store.credentials(&rig.fixture.key).await.unwrap().unwrap();
    stored.value.token_issued_at.unix()
}

/// Host and machine with options of their own.
async fn with_options(rig: &Rig) {
    let texts =
        |pairs: &[(&str, &str)]| pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    rig.fixture
        .change_host(|host| host.spec.agent_options = texts(&[("vlan", "100"), ("on-failure", "poweroff")]))
        .await;
    let machine = key("lab", "m1");
    let mut machine: Beskar7Machine = rig.fixture.store.get(&machine).await.unwrap().unwrap();
    machine.spec.agent_options = texts(&[("verify", "readback"), ("on-failure", "reboot")]);
    rig.fixture.store.update(&machine).await.unwrap();
}

#[tokio::test]
async fn agent_options_are_handed_on_the_hosts_first_and_the_machines_word_counts() {
    let rig = Rig::new().await;
    with_options(&rig).await;
    let script = rig.get(CLIENT, &rig.path()).await.text();
    let words = format!(
        " farrier.run=run-0001 farrier.time={} farrier.on-failure=poweroff farrier.vlan=100 \
         farrier.on-failure=reboot farrier.verify=readback loglevel=5 farrier.end=1\ninitrd ",
        ordered(&rig).await
    );
    assert!(script.contains(&words), "{script}");
    let params = BootParams::parse(script.lines().nth(1).unwrap()).unwrap();
    let parameters = params.extra.iter().map(|(k, v)| (k.as_str(), v.as_str()));
    let options = AgentOptions::parse(parameters).unwrap();
    assert_eq!(options.on_failure, Some(OnFailure::Reboot));
    assert_eq!((options.verify, options.vlan.map(|v| v.get())), (Some(Verify::ReadBack), Some(100)));
}

#[tokio::test]
async fn a_reference_script_carries_no_agent_options() {
    let rig = Rig::with("PEM", "", true).await;
    let plain = rig.get(CLIENT, &rig.path()).await.text();
    with_options(&rig).await;
    assert_eq!(rig.get(CLIENT, &rig.path()).await.text(), plain);
    assert!(!plain.contains("farrier."), "{plain}");
}

#[tokio::test]
async fn the_same_client_may_ask_again_for_two_minutes_and_nobody_else_ever() {
    let rig = Rig::new().await;
    let first = rig.get(CLIENT, &rig.path()).await;
    let version = rig.fixture.host().await.metadata.resource_version;
    assert!(not_found(&rig.get("192.0.2.51", &rig.path()).await));
    assert_eq!(rig.get(CLIENT, &rig.path()).await.body, first.body);
    assert_eq!(rig.fixture.host().await.metadata.resource_version, version);
    rig.fixture.clock.advance(Duration::from_secs(116));
    assert_eq!(rig.get(CLIENT, &rig.path()).await.status, StatusCode::OK);
    assert!(not_found(&rig.get(CLIENT, &rig.path()).await));
}

#[tokio::test]
async fn every_refusal_is_the_same_bytes_and_consumes_nothing() {
    let rig = Rig::new().await;
    rig.fixture.store.create(host("h2")).await.unwrap();
    let before = rig.fixture.everything().await;
    let nonce = rig.fixture.nonce.expose();
    let wrong = BootNonce::from_random([3; 32]);
    let paths = [
        format!("/api/v1/boot/lab/h1/{}", wrong.expose()),
        format!("/api/v1/boot/lab/h1/{}", rig.fixture.token.expose()),
        format!("/api/v1/boot/lab/h1/{nonce}x"),
        format!("/api/v1/boot/lab/h2/{nonce}"),
        format!("/api/v1/boot/lab/none/{nonce}"),
        format!("/api/v1/boot/other/h1/{nonce}"),
        format!("/api/v1/boot/LAB/h1/{nonce}"),
        format!("/api/v1/boot/lab/%2e%2e/{nonce}"),
        format!("/api/v1/boot/lab/%ff/{nonce}"),
    ];
    for path in paths {
        assert!(not_found(&rig.get(CLIENT, &path).await), "{path}");
    }
    assert_eq!(rig.fixture.everything().await, before);
    rig.fixture.clock.advance(Duration::from_secs(600));
    assert!(not_found(&rig.get(CLIENT, &rig.path()).await), "expired");
    assert_eq!(rig.fixture.everything().await, before);
}

#[tokio::test]
async fn a_script_that_cannot_be_rendered_does_not_use_up_the_nonce() {
    let long: &'static str = "x".repeat(1500).leak();
    for ca in ["", long] {
        let rig = Rig::with(ca, "", false).await;
        let before = rig.fixture.everything().await;
        assert!(not_found(&rig.get(CLIENT, &rig.path()).await));
        assert_eq!(rig.fixture.everything().await, before);
    }
    let rig = Rig::new().await;
    let before = rig.fixture.everything().await;
    rig.fixture.store.delete::<Beskar7Machine>(&key("lab", "m1")).await.unwrap();
    assert!(not_found(&rig.get(CLIENT, &rig.path()).await));
    assert_eq!(rig.fixture.everything().await, before);
}

#[tokio::test]
async fn s075_of_many_clients_at_once_exactly_one_is_served() {
    let rig = Rig::new().await;
    let requests = (1..=20).map(|n| {
        let path = rig.path();
        let router = rig.router.clone();
        async move {
            let request = Request::builder().uri(path).body(Body::empty()).unwrap();
            ask(&router, &format!("192.0.2.{n}"), request).await
        }
    });
    let answers = futures_util::future::join_all(requests).await;
    let (served, refused): (Vec<_>, Vec<_>) = answers.into_iter().partition(|a| a.status == StatusCode::OK);
    assert_eq!(served.len(), 1);
    assert!(refused.iter().all(not_found));
}

#[tokio::test]
async fn s077_a_host_that_changes_three_times_in_a_row_is_not_served_and_keeps_its_nonce() {
    for (changes, served) in [(2, true), (3, false)] {
        let fixture = Fixture::in_state(HostState::Inspecting).await;
        let ca = MeddlingCa { store: fixture.store.clone(), left: AtomicU32::new(changes) };
        let rig = Rig::around(fixture, Arc::new(ca), "", false);
        let answer = rig.get(CLIENT, &rig.path()).await;
        assert_eq!(answer.status == StatusCode::OK, served, "{changes}");
        assert!(served || not_found(&answer));
        let consumed = rig.fixture.host().await.status.bootstrap.and_then(|b| b.boot_nonce_consumed_at);
        assert_eq!(consumed.is_some(), served, "{changes}");
        assert_eq!(rig.get(CLIENT, &rig.path()).await.status, StatusCode::OK, "the nonce is good yet");
    }
}
