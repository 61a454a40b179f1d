//! Group D: one boot script for one boot.

use std::net::IpAddr;
use std::time::Duration;

use farrier_shared::contract::secret::BootNonce;
use farrier_shared::lifecycle::boot::{BootDecision, BootRefusal, client_hash, decide_boot};
use farrier_shared::resource::HostState::InUse;

use crate::bench::Bench;

const CLIENT: &str = "192.0.2.7";
const OTHER: &str = "192.0.2.8";

fn ask<'a>(bench: &'a Bench, nonce: &str, client: &str) -> BootDecision<'a> {
    decide_boot(&bench.host, bench.read(), nonce, client.parse().unwrap(), bench.now, &bench.timings)
}

fn nonce(bench: &Bench) -> String {
    bench.credentials.as_ref().unwrap().nonce.expose().to_owned()
}

/// Fetches once and keeps the record.
fn consume(bench: &mut Bench, client: &str) {
    let BootDecision::Consume { bootstrap, .. } = ask(bench, &nonce(bench), client) else {
        panic!("not consumed");
    };
    bench.host.status.bootstrap = Some(*bootstrap);
}

#[test]
fn s071_the_first_fetch_is_recorded_with_its_client() {
    let mut bench = Bench::at(InUse);
    consume(&mut bench, CLIENT);
    let record = bench.host.status.bootstrap.as_ref().unwrap();
    let credentials = bench.credentials.as_ref().unwrap();
    assert_eq!(record.boot_nonce_consumed_at, Some(bench.now));
    assert_eq!(record.boot_nonce_consumed_hash, credentials.nonce.sha256_hex());
    let hash = client_hash(&credentials.nonce, CLIENT.parse().unwrap());
    assert_eq!(record.boot_nonce_consumed_client_hash, hash);
    assert_eq!(record.url, "https://controller.example:8082", "the rest of the mirror stays");
}

#[test]
fn s072_s074_the_same_client_again_within_the_window_and_nobody_else() {
    let mut bench = Bench::at(InUse);
    consume(&mut bench, CLIENT);
    bench.wait(119);
    assert!(matches!(ask(&bench, &nonce(&bench), CLIENT), BootDecision::Again { .. }));
    assert_eq!(ask(&bench, &nonce(&bench), OTHER), BootDecision::Refuse(BootRefusal::Consumed));
    bench.wait(1);
    assert_eq!(ask(&bench, &nonce(&bench), CLIENT), BootDecision::Refuse(BootRefusal::Consumed));
}

#[test]
fn a_run_that_is_over_is_not_booted() {
    let mut bench = Bench::run_failed();
    bench.host.status.bootstrap = None;
    assert_eq!(ask(&bench, &nonce(&bench), CLIENT), BootDecision::Refuse(BootRefusal::RunOver));
    let mut bench = Bench::at(farrier_shared::resource::HostState::Ready);
    bench.host.status.bootstrap = None;
    assert_eq!(ask(&bench, &nonce(&bench), CLIENT), BootDecision::Refuse(BootRefusal::RunOver));
    // A BMC that is away ends no run.
    let bench = Bench::at(farrier_shared::resource::HostState::Error);
    assert!(matches!(ask(&bench, &nonce(&bench), CLIENT), BootDecision::Consume { .. }));
}

#[test]
fn s076_a_nonce_replaced_meanwhile_is_never_served() {
    let mut bench = Bench::at(InUse);
    let old = nonce(&bench);
    bench.mint();
    assert!(matches!(ask(&bench, &old, CLIENT), BootDecision::Refuse(BootRefusal::Credentials(_))));
}

#[test]
fn s078_every_miss_is_refused() {
    let bench = Bench::at(InUse);
    let right = nonce(&bench);
    for wrong in ["", "x", "A", &format!("{right} "), &right[1..]] {
        assert!(matches!(ask(&bench, wrong, CLIENT), BootDecision::Refuse(_)), "{wrong:?}");
    }
    let mut expired = Bench::at(InUse);
    expired.wait(600);
    assert!(matches!(ask(&expired, &nonce(&expired), CLIENT), BootDecision::Refuse(_)));
    let mut unclaimed = Bench::at(InUse);
    unclaimed.host.spec.consumer_ref = None;
    assert!(matches!(ask(&unclaimed, &nonce(&unclaimed), CLIENT), BootDecision::Refuse(_)));
}

#[test]
fn s080_a_record_of_an_earlier_nonce_does_not_count() {
    let mut bench = Bench::at(InUse);
    consume(&mut bench, OTHER);
    bench.mint();
    assert!(matches!(ask(&bench, &nonce(&bench), CLIENT), BootDecision::Consume { .. }));
}

#[test]
fn s081_a_record_without_a_nonce_is_overwritten_but_its_nonce_never_reused() {
    let mut bench = Bench::at(InUse);
    consume(&mut bench, OTHER);
    bench.host.status.bootstrap.as_mut().unwrap().boot_nonce_consumed_hash.clear();
    assert!(matches!(ask(&bench, &nonce(&bench), CLIENT), BootDecision::Consume { .. }));
    let old = nonce(&bench);
    let ensured = bench.ensure(None).unwrap();
    assert_ne!(ensured.credentials().nonce.expose(), old);
}

#[test]
fn s082_a_record_without_a_client_serves_nobody_again() {
    let mut bench = Bench::at(InUse);
    consume(&mut bench, CLIENT);
    bench.host.status.bootstrap.as_mut().unwrap().boot_nonce_consumed_client_hash.clear();
    assert!(matches!(ask(&bench, &nonce(&bench), CLIENT), BootDecision::Refuse(_)));
}

#[test]
fn s206_the_first_cycles_nonce_is_nothing_in_the_second() {
    let mut bench = Bench::at(InUse);
    let first = nonce(&bench);
    bench.host.spec.consumer_ref = None;
    bench.pass();
    bench.machine = crate::objects::machine_named("machine-02");
    bench.machine_pass();
    bench.pass();
    assert!(matches!(ask(&bench, &first, CLIENT), BootDecision::Refuse(_)));
    bench.machine_pass();
    assert!(matches!(ask(&bench, &first, CLIENT), BootDecision::Refuse(_)));
    assert!(matches!(ask(&bench, &nonce(&bench), CLIENT), BootDecision::Consume { .. }));
}

/// Values computed with Python's hmac module.
#[test]
fn a_client_is_named_by_the_hmac_of_its_canonical_address() {
    let nonce: BootNonce = "test-nonce-0123456789abcdef0000000000000000".parse().unwrap();
    let hash = |text: &str| client_hash(&nonce, text.parse::<IpAddr>().unwrap());
    let v4 = "69b742ab8398246c3d5d8f476bcec790330ae8dbde25e92bd88997518e726352";
    let v6 = "d4d42ade417c6ea63f56e6e7958a0329fdc59c33a86f5e3ccab6c9706e834e0a";
    assert_eq!(hash("192.0.2.7"), v4);
    assert_eq!(hash("::ffff:192.0.2.7"), v4);
    assert_eq!(hash("2001:db8::1"), v6);
    assert_eq!(hash("2001:0db8:0:0:0:0:0:1"), v6);
}

#[test]
fn the_window_is_that_of_the_timings() {
    let mut bench = Bench::at(InUse);
    bench.timings.nonce_retry_window = Duration::ZERO;
    consume(&mut bench, CLIENT);
    assert!(matches!(ask(&bench, &nonce(&bench), CLIENT), BootDecision::Refuse(_)));
}
