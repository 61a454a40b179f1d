//! What firmware and strangers get from `/boot` and `/ipxe`.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, StatusCode};
use farrier_shared::contract::BootNonce;
use farrier_shared::contract::cmdline::BootParams;
use farrier_shared::contract::options::{AgentOptions, OnFailure, Verify};
use farrier_shared::resource::{Beskar7Machine, HostState, PhysicalHost};
use futures_util::FutureExt as _;

use super::*;
use crate::fixture::{Answer, Fixture, ask, host, key};

struct FixedCa(&'static str);

impl CaBundle for FixedCa {
    fn pem(&self) -> Result<Vec<u8>, String> {
        if self.0.is_empty() { Err("no CA".to_owned()) } else { Ok(self.0.as_bytes().to_vec()) }
    }
}

/// Changes the host so many times when it is asked for the bundle: between the reading of the host and its writing.
struct MeddlingCa {
    store: Store,
    left: AtomicU32,
}

impl CaBundle for MeddlingCa {
    fn pem(&self) -> Result<Vec<u8>, String> {
        let left = self.left.load(Ordering::Relaxed);
        if left > 0 {
            self.left.store(left - 1, Ordering::Relaxed);
            // A store in memory answers at once.
            let host = self.store.get::<PhysicalHost>(&key("lab", "h1")).now_or_never().unwrap();
            let mut host = host.unwrap().unwrap();
            host.metadata.labels.insert("changes".to_owned(), left.to_string());
            self.store.update(&host).now_or_never().unwrap().unwrap();
        }
        Ok(b"PEM".to_vec())
    }
}

struct Rig {
    fixture: Fixture,
    router: Router,
}

const CLIENT: &str = "192.0.2.50";

impl Rig {
    async fn with(ca: &'static str, proxies: &str, reference_boot: bool) -> Self {
        let fixture = Fixture::in_state(HostState::Inspecting).await;
        Self::around(fixture, Arc::new(FixedCa(ca)), proxies, reference_boot)
    }

    fn around(fixture: Fixture, ca: Arc<dyn CaBundle>, proxies: &str, reference_boot: bool) -> Self {
        let boot = Boot {
            store: fixture.store.clone(),
            clock: Arc::new(fixture.clock.clone()),
            timings: Arc::default(),
            scripts: Arc::new(Renderer {
                ca,
                url_base: "https://192.0.2.1:8082".parse().unwrap(),
                reference_boot,
            }),
            proxies: Arc::new(proxies.parse().unwrap()),
            rate: Arc::default(),
        };
        Self { fixture, router: router(boot, "https://192.0.2.1:8082".parse().unwrap()) }
    }

    async fn new() -> Self {
        Self::with("PEM", "", false).await
    }

    async fn get(&self, client: &str, path: &str) -> Answer {
        // Each request on its own: the limit has a test of its own.
        self.fixture.clock.advance(Duration::from_secs(1));
        ask(&self.router, client, Request::builder().uri(path).body(Body::empty()).unwrap()).await
    }

    fn path(&self) -> String {
        farrier_shared::contract::paths::boot(&self.fixture.key, &self.fixture.nonce)
    }
}

fn not_found(answer: &Answer) -> bool {
    (answer.status, answer.body.as_slice()) == (StatusCode::NOT_FOUND, b"not found".as_slice())
}

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

#[tokio::test]
async fn s098_the_sixth_request_in_a_second_is_turned_away_before_anything_is_looked_at() {
    let rig = Rig::new().await;
    let ask_at_once = |client| {
        let request = Request::builder().uri("/api/v1/boot/lab/h1/wrong").body(Body::empty()).unwrap();
        ask(&rig.router, client, request)
    };
    for _ in 0..5 {
        assert!(not_found(&ask_at_once(CLIENT).await));
    }
    let answer = ask_at_once(CLIENT).await;
    assert_eq!((answer.status, answer.text().as_str()), (StatusCode::TOO_MANY_REQUESTS, "too many requests"));
    assert!(not_found(&ask_at_once("192.0.2.51").await));
    rig.fixture.clock.advance(Duration::from_secs(1));
    assert!(not_found(&ask_at_once(CLIENT).await));
}

#[test]
fn s098_forwarded_addresses_count_only_from_trusted_proxies() {
    let trusted: TrustedProxies = "192.0.2.1, 10.0.0.0/8, fd00::/8".parse().unwrap();
    let table: [(&str, &[&str], &str); 9] = [
        ("198.51.100.9", &["203.0.113.5"], "198.51.100.9"),
        ("192.0.2.1", &["203.0.113.5"], "203.0.113.5"),
        ("192.0.2.1", &["203.0.113.5, 10.1.1.1"], "203.0.113.5"),
        ("192.0.2.1", &["6.6.6.6, 203.0.113.5"], "203.0.113.5"),
        ("192.0.2.1", &["6.6.6.6", "203.0.113.5, nonsense"], "203.0.113.5"),
        ("192.0.2.1", &["10.1.1.1, 192.0.2.1"], "192.0.2.1"),
        ("192.0.2.1", &[], "192.0.2.1"),
        ("::ffff:192.0.2.1", &["2001:DB8:0:0::1"], "2001:db8::1"),
        ("fd00::1", &["::ffff:203.0.113.5"], "203.0.113.5"),
    ];
    for (peer, lines, expected) in table {
        let mut headers = axum::http::HeaderMap::new();
        for line in lines {
            headers.append("x-forwarded-for", line.parse().unwrap());
        }
        let peer = std::net::SocketAddr::new(peer.parse().unwrap(), 1);
        assert_eq!(trusted.client(peer, &headers).to_string(), expected, "{peer} {lines:?}");
    }
    let mapped: TrustedProxies = "::ffff:192.0.2.1, ::ffff:10.0.0.0/104".parse().unwrap();
    for (peer, is_one) in [("192.0.2.1", true), ("192.0.2.2", false), ("10.9.9.9", true), ("11.0.0.1", false)]
    {
        assert_eq!(mapped.contains(peer.parse().unwrap()), is_one, "{peer}");
    }
    for bad in [
        "10.0.0.0/33",
        "10.0.0",
        "x",
        "10.0.0.1/",
        "::/129",
        "10.0.0.1/-1",
        "10.0.0.0/+8",
        "::ffff:0.0.0.0/90",
    ] {
        assert!(bad.parse::<TrustedProxies>().is_err(), "{bad}");
    }
    assert_eq!(" , ".parse::<TrustedProxies>().unwrap(), TrustedProxies::default());
}

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

#[tokio::test]
async fn logs_hold_neither_nonce_nor_token() {
    let (logs, guard) = crate::fixture::capture_logs();
    let rig = Rig::new().await;
    rig.get(CLIENT, "/ipxe/52:54:00:12:34:56").await;
    rig.get(CLIENT, &rig.path()).await;
    rig.get("192.0.2.51", &rig.path()).await;
    drop(guard);
    let logs = logs.text();
    assert!(logs.contains("boot script served") && logs.contains("boot script refused"), "{logs}");
    for secret in [rig.fixture.nonce.expose(), rig.fixture.token.expose()] {
        assert!(!logs.contains(secret), "{logs}");
    }
}
