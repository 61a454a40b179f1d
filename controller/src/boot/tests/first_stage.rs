//! What a machine gets that knows no more than its own address.

use super::*;

#[tokio::test]
async fn the_first_stage_chains_a_due_host_to_its_script_which_then_boots() {
    let rig = Rig::new().await;
    let ours = rig.path();
    for spelt in ["52:54:00:12:34:56", "52-54-00-12-34-56"] {
        let script = rig.get(CLIENT, &format!("/ipxe/{spelt}?platform=efi")).await.text();
        let chain =
            "chain --replace --autofree https://192.0.2.1:8082/ipxe/52:54:00:12:34:56?boot=1&platform=efi ||";
        assert!(script.contains(chain), "{script}");
        // Firmware shows on its console what it is told to fetch.
        assert!(!script.contains("/api/v1/boot/"), "{script}");
    }
    let next = "/ipxe/52:54:00:12:34:56?boot=1&platform=efi";
    let sent = rig.get(CLIENT, next).await;
    assert_eq!(sent.status, StatusCode::FOUND);
    let expected = format!("https://192.0.2.1:8082{ours}?mac=52:54:00:12:34:56&platform=efi");
    assert_eq!(sent.headers["location"], expected);
    assert_eq!(rig.get(CLIENT, &ours).await.status, StatusCode::OK);
    // Firmware that starts over within the window is sent there again; another client is not.
    assert_eq!(rig.get(CLIENT, next).await.status, StatusCode::FOUND);
    assert_eq!(rig.get("192.0.2.51", next).await.status, StatusCode::OK);
}

#[tokio::test]
async fn nobody_is_stranded_at_the_first_stage() {
    let rig = Rig::new().await;
    let waits = |script: &str| {
        script.contains("sleep 10") && script.contains("round=4") && script.ends_with("exit\n")
    };
    let leaves = |script: &str| !script.contains("chain ") && script.ends_with("exit\n");
    let script = rig.get(CLIENT, "/ipxe/52:54:00:00:00:00?round=3").await;
    assert!(script.status == StatusCode::OK && waits(&script.text()), "unknown: {script:?}");
    assert!(leaves(&rig.get(CLIENT, "/ipxe/52:54:00:00:00:00?round=30").await.text()));
    for odd in ["/ipxe/nonsense?round=x", "/ipxe/%ff"] {
        let odd = rig.get(CLIENT, odd).await;
        assert!(odd.status == StatusCode::OK && leaves(&odd.text()), "{odd:?}");
    }

    rig.fixture.change_host(|host| host.status.state = HostState::Ready).await;
    assert!(leaves(&rig.get(CLIENT, "/ipxe/52:54:00:12:34:56").await.text()), "installed");
    rig.fixture.change_host(|host| host.spec.consumer_ref = None).await;
    rig.fixture.change_host(|host| host.status.state = HostState::Available).await;
    assert!(waits(&rig.get(CLIENT, "/ipxe/52:54:00:12:34:56?round=3").await.text()), "free");

    // Two hosts with one address: guessing could wipe the wrong one.
    let rig = Rig::new().await;
    rig.fixture.store.create(host("h2")).await.unwrap();
    assert!(waits(&rig.get(CLIENT, "/ipxe/52:54:00:12:34:56?round=3").await.text()));
}

#[tokio::test]
async fn an_address_belongs_to_the_host_it_is_declared_for_whoever_reports_it() {
    let rig = Rig::new().await;
    // A card that has moved from h2 to h1, or a machine that lies.
    let mut other = host("h2");
    other.spec.boot_mac_addresses.clear();
    let report = r#"{"nics":[{"macAddress":"52:54:00:12:34:56"}]}"#;
    other.status.inspection_report = Some(serde_json::from_str(report).unwrap());
    rig.fixture.store.create(other).await.unwrap();
    let sent = rig.get(CLIENT, "/ipxe/52:54:00:12:34:56?boot=1").await;
    assert_eq!(sent.status, StatusCode::FOUND);
    assert!(sent.headers["location"].to_str().unwrap().contains("/lab/h1/"));
}

#[tokio::test]
async fn a_host_without_declared_addresses_is_known_by_those_it_reported() {
    let rig = Rig::new().await;
    let report = serde_json::from_str(r#"{"nics":[{"macAddress":"AA:BB:CC:00:00:01"}]}"#).unwrap();
    rig.fixture
        .change_host(|host: &mut PhysicalHost| {
            host.spec.boot_mac_addresses.clear();
            host.status.inspection_report = Some(report);
        })
        .await;
    assert_eq!(rig.get(CLIENT, "/ipxe/aa:bb:cc:00:00:01?boot=1").await.status, StatusCode::FOUND);
}
