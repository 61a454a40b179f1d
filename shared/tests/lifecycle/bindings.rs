//! Group C: signals that are not bound to the present run do nothing.

use farrier_shared::lifecycle::verdict::{sign, verdict};
use farrier_shared::lifecycle::{HostEffect, Signal, SignalKey, Verdict};
use farrier_shared::resource::HostState::{Deploying, InUse, Inspecting};

use crate::bench::{Bench, Store};

/// Every signal in the state where it would act, with its report if it has one.
fn acting() -> Vec<(Bench, SignalKey, &'static str, Option<&'static str>)> {
    let reported = || {
        let mut bench = Bench::at(Inspecting);
        bench.report("{}");
        bench.pass();
        bench
    };
    vec![
        (Bench::at(InUse), SignalKey::InspectionRequest, "inspect", None),
        (reported(), SignalKey::InspectionRequest, "inspect-complete", None),
        (Bench::at(Inspecting), SignalKey::InspectionRequest, "timeout", None),
        (Bench::at(Inspecting), SignalKey::InspectionResult, "host-01-inspection-result", Some("{}")),
        (Bench::at(Deploying), SignalKey::Provisioned, "provisioned", None),
        (Bench::at(Deploying), SignalKey::ProvisionFailed, "no space", None),
    ]
}

fn assert_dropped(mut bench: Bench, signal: Signal, why: &str) {
    let before = bench.host.status.clone();
    let note = format!("default/host-01: {} is not bound to the present run", signal.key.annotation());
    bench.put(signal);
    let decision = bench.pass();
    assert_eq!(bench.host.status, before, "{why}");
    assert!(bench.signals.is_empty(), "{why}");
    assert_eq!(decision.notes, [note], "{why}: host and key, nothing else");
}

#[test]
fn each_of_them_acts_when_bound() {
    for (mut bench, key, value, report) in acting() {
        let before = bench.host.status.clone();
        bench.put(bench.signed(key, value, report));
        bench.pass();
        assert_ne!(bench.host.status, before, "{key:?} {value}");
    }
}

#[test]
fn s054_s209_without_a_binding() {
    for (bench, key, value, report) in acting() {
        let signal = Signal { binding: None, ..bench.signed(key, value, report) };
        assert_dropped(bench, signal, value);
    }
}

#[test]
fn s055_with_the_binding_of_another_value() {
    for (bench, key, value, report) in acting() {
        let other = bench.signed(key, "other", report).binding;
        let signal = Signal { binding: other, ..bench.signed(key, value, report) };
        assert_dropped(bench, signal, value);
    }
}

#[test]
fn s056_with_the_binding_of_an_older_nonce() {
    for (mut bench, key, value, report) in acting() {
        let signal = bench.signed(key, value, report);
        let run = bench.credentials.as_ref().unwrap().run.clone();
        bench.mint();
        bench.credentials.as_mut().unwrap().run = run;
        bench.pass();
        assert_dropped(bench, signal, value);
    }
}

#[test]
fn s058_with_a_report_rewritten_after_the_post() {
    let bench = Bench::at(Inspecting);
    let mut signal = bench.signed(SignalKey::InspectionResult, "host-01-inspection-result", Some("{}"));
    signal.report = Some(r#"{"cpus":[{"cores":512}]}"#.to_owned());
    assert_dropped(bench, signal, "rewritten");
}

#[test]
fn s060_credentials_that_cannot_be_read_leave_it_for_the_next_pass() {
    for (mut bench, key, value, report) in acting() {
        bench.put(bench.signed(key, value, report));
        let before = bench.host.status.clone();
        bench.store = Store::Silent;
        bench.pass();
        assert_eq!((&bench.host.status, bench.signals.len()), (&before, 1), "{value}");
        bench.store = Store::Answers;
        bench.pass();
        assert_ne!(bench.host.status, before, "{value}");
    }
}

#[test]
fn s061_credentials_that_are_missing_or_anothers() {
    for (mut bench, key, value, report) in acting() {
        bench.put(bench.signed(key, value, report));
        let credentials = bench.credentials.clone();
        let judge = |bench: &Bench| verdict(&bench.host, bench.read(), &bench.signals[0]);
        assert_eq!(judge(&bench), Verdict::Bound);
        bench.credentials.as_mut().unwrap().host_uid = "another".to_owned();
        assert_eq!(judge(&bench), Verdict::Rejected);
        bench.credentials = None;
        assert_eq!(judge(&bench), Verdict::Rejected);
        bench.credentials = credentials;
        bench.credentials.as_mut().unwrap().consumer = "another".to_owned();
        assert_eq!(judge(&bench), Verdict::Rejected);
    }
}

#[test]
fn s062_an_expired_token_does_not_undo_what_was_reported() {
    let mut bench = Bench::at(Deploying);
    bench.sign(SignalKey::Provisioned, "provisioned");
    bench.credentials.as_mut().unwrap().token_expires_at = bench.now;
    bench.pass();
    assert_eq!(bench.state(), farrier_shared::resource::HostState::Ready);
}

#[test]
fn s064_records_without_a_consumer_uid_bind_all_the_same() {
    let mut bench = Bench::at(Deploying);
    bench.credentials.as_mut().unwrap().consumer_uid = String::new();
    bench.sign(SignalKey::Provisioned, "provisioned");
    bench.pass();
    assert_eq!(bench.state(), farrier_shared::resource::HostState::Ready);
}

#[test]
fn s068_success_kept_for_an_unbound_report_is_cleared_with_it() {
    let mut bench = Bench::at(Inspecting);
    let forged = Signal { binding: None, ..bench.signed(SignalKey::InspectionResult, "any", Some("{}")) };
    bench.put(forged);
    bench.sign(SignalKey::Provisioned, "provisioned");
    bench.pass();
    bench.pass();
    assert!(bench.signals.is_empty());
    assert_eq!(bench.state(), Inspecting);
}

#[test]
fn s208_a_binding_of_another_key_or_with_a_digest_where_none_belongs() {
    let bench = Bench::at(Deploying);
    let other_key = bench.signed(SignalKey::ProvisionFailed, "provisioned", None).binding;
    let signal = Signal { binding: other_key, ..bench.signed(SignalKey::Provisioned, "provisioned", None) };
    assert_dropped(bench, signal, "key");
    let bench = Bench::at(Deploying);
    let with_digest = bench.signed(SignalKey::Provisioned, "provisioned", Some("{}")).binding;
    let signal = Signal { binding: with_digest, ..bench.signed(SignalKey::Provisioned, "provisioned", None) };
    assert_dropped(bench, signal, "digest");
}

#[test]
fn a_report_of_another_run_is_stale_whatever_signs_it() {
    let mut bench = Bench::at(Deploying);
    let mut other = bench.credentials.clone().unwrap();
    other.run = "another-run".to_owned();
    let signal = sign(&bench.host, &other, SignalKey::Provisioned, "provisioned", None);
    bench.credentials = Some(other);
    bench.put(signal);
    let decision = bench.pass();
    assert_eq!(bench.state(), Deploying);
    assert!(decision.effects.iter().any(|e| matches!(e, HostEffect::RemoveSignal(_))));
}
