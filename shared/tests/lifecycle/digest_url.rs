//! Group J: digests by URL.

use std::time::Duration;

use farrier_shared::contract::digest::Digest;
use farrier_shared::contract::web_url::WebUrl;
use farrier_shared::lifecycle::digest_url::{Backoff, ChecksumError, file_name, parse_checksum_file};
use farrier_shared::lifecycle::{DigestRead, MachineEffect, Timings, claim};
use farrier_shared::resource::HostState::{Available, Deploying, InUse};

use crate::bench::Bench;
use crate::objects::machine_named;

const HEX: &str = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
const OTHER: &str = "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae";
const SUMS: &str = "https://images.example/SHA256SUMS";

fn url(text: &str) -> WebUrl {
    text.parse().unwrap()
}

fn image() -> WebUrl {
    url("https://images.example/path/os.raw")
}

fn parse(text: &str) -> Result<Digest, ChecksumError> {
    parse_checksum_file(text.as_bytes(), &image())
}

#[test]
fn s162_formats() {
    let wanted: Digest = format!("sha256:{HEX}").parse().unwrap();
    let good = [
        HEX.to_owned(),
        format!("{HEX}\n"),
        format!("  {}  \n\n", HEX.to_uppercase()),
        format!("{HEX}  os.raw\n"),
        format!("{HEX} *os.raw\r\n"),
        format!("{HEX}  ./os.raw"),
        format!("SHA256 (os.raw) = {HEX}"),
        format!("SHA256 (./os.raw) = {HEX}"),
        format!("# comment\n\n{OTHER}  other.raw\n{HEX}  os.raw\n"),
        format!("{HEX}  os.raw\n{HEX} *os.raw\nSHA256 (os.raw) = {HEX}\n"),
        format!("SHA512 (os.raw) = {HEX}{HEX}\nSHA256 (os.raw) = {HEX}\n"),
        format!("\u{feff}{HEX}  os.raw\n"),
    ];
    for text in good {
        assert_eq!(parse(&text), Ok(wanted), "{text:?}");
    }
}

#[test]
fn s162_what_gives_no_digest() {
    let bad = [
        (String::new(), ChecksumError::NoEntry),
        ("not a checksum file".to_owned(), ChecksumError::NoEntry),
        (format!("{HEX}  other.raw"), ChecksumError::NoEntry),
        (format!("{HEX}  os.raw.sig\n{HEX}  dir/os.raw\n"), ChecksumError::NoEntry),
        (format!("{HEX}\n{OTHER}\n"), ChecksumError::NoEntry),
        (format!("SHA512 (os.raw) = {HEX}{HEX}"), ChecksumError::NotSha256),
        (format!("{HEX}{HEX}  os.raw"), ChecksumError::NotSha256),
        ("d41d8cd98f00b204e9800998ecf8427e  os.raw".to_owned(), ChecksumError::NotSha256),
        (format!("{HEX}  os.raw\n{OTHER}  os.raw\n"), ChecksumError::Conflict),
        ("x".repeat(65_537), ChecksumError::TooLarge),
    ];
    for (text, error) in bad {
        assert_eq!(parse(&text), Err(error), "{text:.80?}");
    }
    assert_eq!(parse_checksum_file(&[0xff, 0xfe], &image()), Err(ChecksumError::NotText));
}

#[test]
fn s166_names_come_from_the_last_segment() {
    assert_eq!(file_name(&url("https://x.example/a/b.raw?x=1#y")).as_deref(), Ok("b.raw"));
    assert_eq!(file_name(&url("https://x.example/a%20b.raw")).as_deref(), Ok("a b.raw"));
    for none in [
        "https://x.example/",
        "https://x.example",
        "https://x.example/a/",
        "https://x.example/a%2fb",
        "https://x.example/%ff",
        "https://x.example/%+f",
    ] {
        assert_eq!(file_name(&url(none)), Err(ChecksumError::NoFileName), "{none}");
    }
    // A bare digest needs no name.
    assert!(parse_checksum_file(HEX.as_bytes(), &url("https://x.example/")).is_ok());
}

fn by_url(state: farrier_shared::resource::HostState) -> Bench {
    let mut bench = Bench::at(state);
    bench.machine.spec.target_image_digest = None;
    bench.machine.spec.target_image_digest_url = Some(url(SUMS));
    bench
}

fn resolved(from: &str) -> DigestRead {
    DigestRead::Resolved { url: url(from), digest: Digest::from_bytes([9; 32]) }
}

#[test]
fn s160_the_digest_is_pinned_before_any_claim() {
    let mut bench = by_url(Available);
    let decision = bench.machine_pass();
    assert_eq!(decision.effects.last(), Some(&MachineEffect::ResolveDigest(url(SUMS))));
    assert_eq!(bench.machine_condition("InfrastructureReady").1, "WaitingForTargetImageDigest");
    bench.digest = resolved(SUMS);
    let decision = bench.machine_pass();
    assert_eq!(decision.effects, [MachineEffect::WriteStatus]);
    assert_eq!(decision.requeue, Duration::from_secs(1));
    assert_eq!(bench.machine.status.target_image_digest, Some(Digest::from_bytes([9; 32])));
    let decision = bench.machine_pass();
    assert!(decision.effects.iter().any(|e| matches!(e, MachineEffect::Claim(_))));
}

#[test]
fn a_machine_that_has_its_digest_and_no_host_waits_for_a_host() {
    let mut bench = by_url(Available);
    bench.host.spec.consumer_ref = Some(claim::reference_to(&machine_named("other")));
    bench.machine_pass();
    assert_eq!(bench.machine_condition("InfrastructureReady").1, "WaitingForTargetImageDigest");
    bench.digest = resolved(SUMS);
    bench.machine_pass();
    let told =
        |bench: &Bench| (bench.machine_condition("InfrastructureReady"), bench.machine_condition("Ready"));
    let (infrastructure, ready) = told(&bench);
    assert_eq!(infrastructure.1, "PhysicalHostNotReady");
    assert_eq!(infrastructure.2, "The image's digest is known, a host is looked for");
    assert_eq!(ready.1, "PhysicalHostNotReady");
    bench.machine_pass();
    let associated = bench.machine_condition("PhysicalHostAssociated");
    assert_eq!(associated.1, "WaitingForPhysicalHost");
    assert_eq!(bench.machine_condition("InfrastructureReady").2, associated.2);
}

#[test]
fn s163_a_pin_outlives_the_files_changes_and_a_claim_outlives_the_urls() {
    let mut bench = by_url(InUse);
    bench.digest = resolved(SUMS);
    bench.machine_pass();
    let pinned = bench.machine.status.target_image_digest;
    bench.digest = DigestRead::Resolved { url: url(SUMS), digest: Digest::from_bytes([1; 32]) };
    bench.machine_pass();
    assert_eq!(bench.machine.status.target_image_digest, pinned);
    bench.machine.spec.target_image_digest_url = Some(url("https://images.example/NEW"));
    bench.machine_pass();
    assert_eq!(bench.machine.status.target_image_digest, pinned, "claimed: the pin is kept");
    bench.host.spec.consumer_ref = None;
    let decision = bench.machine_pass();
    let fetch = MachineEffect::ResolveDigest(url("https://images.example/NEW"));
    assert!(decision.effects.contains(&fetch), "unclaimed: resolved anew, never from another URL's answer");
}

#[test]
fn s164_failures_back_off() {
    let mut bench = by_url(Available);
    bench.digest = DigestRead::Failed { message: "no entry".to_owned(), retry_in: Duration::from_secs(30) };
    let decision = bench.machine_pass();
    assert!(
        !decision
            .effects
            .iter()
            .any(|e| matches!(e, MachineEffect::ResolveDigest(_) | MachineEffect::Claim(_)))
    );
    assert_eq!(decision.requeue, Duration::from_secs(30));
    let mut backoff = Backoff::default();
    let waits: Vec<u64> = (0..6).map(|_| backoff.failed(&Timings::default()).as_secs()).collect();
    assert_eq!(waits, [30, 60, 120, 240, 300, 300]);
}

#[test]
fn a_digest_in_the_spec_drops_the_pin_and_an_installed_machine_fetches_nothing() {
    let mut bench = by_url(Available);
    bench.digest = resolved(SUMS);
    bench.machine_pass();
    bench.machine.spec.target_image_digest = Some(Digest::from_bytes([7; 32]));
    bench.machine.spec.target_image_digest_url = None;
    bench.machine_pass();
    assert_eq!(bench.machine.status.target_image_digest, None);
    assert_eq!(bench.machine.status.target_image_digest_url, None);
    let mut installed = by_url(Available);
    installed.machine.spec.provider_id = Some("b7://default/host-01".parse().unwrap());
    assert!(!installed.decide_machine().effects.iter().any(|e| matches!(e, MachineEffect::ResolveDigest(_))));
}

#[test]
fn a_run_under_way_does_not_wait_for_a_checksum_file() {
    let mut bench = by_url(Deploying);
    bench.digest = DigestRead::Failed { message: "x".to_owned(), retry_in: Duration::from_secs(30) };
    bench.machine_pass();
    assert_eq!(bench.machine_condition("InfrastructureReady").1, "PhysicalHostNotReady");
}
