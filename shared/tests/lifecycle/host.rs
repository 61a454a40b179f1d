//! Groups A and B: the host's own passes.

use std::time::Duration;

use farrier_shared::lifecycle::host::HostEffect;
use farrier_shared::lifecycle::{BmcObservation, SignalKey};
use farrier_shared::resource::HostState::{self, Available, Deploying, Error, InUse, Inspecting, Ready};
use farrier_shared::resource::condition::Truth;
use farrier_shared::resource::host::InspectionPhase;

use crate::bench::{Bench, down};

fn kinds(decision: &farrier_shared::lifecycle::HostDecision) -> Vec<&'static str> {
    let name = |effect: &HostEffect| match effect {
        HostEffect::AddFinalizer => "AddFinalizer",
        HostEffect::RemoveFinalizer => "RemoveFinalizer",
        HostEffect::WriteStatus => "WriteStatus",
        HostEffect::RemoveSignal(_) => "RemoveSignal",
        HostEffect::RenewToken(_) => "RenewToken",
        HostEffect::ForgetBoot => "ForgetBoot",
        HostEffect::Record(_) => "Record",
    };
    decision.effects.iter().map(name).collect()
}

#[test]
fn s001_new_host_becomes_available() {
    let mut bench = Bench::new();
    let decision = bench.pass();
    assert_eq!(bench.state(), Available);
    assert!(bench.host.status.ready);
    assert_eq!(bench.host_condition("RedfishConnectionReady").1, "RedfishConnected");
    let (truth, reason, _) = bench.host_condition("HostAvailable");
    assert_eq!((truth, reason.as_str()), (Truth::True, "HostAvailable"));
    assert_eq!(decision.requeue, Duration::from_secs(300));
}

#[test]
fn s002_finalizer_comes_first_and_alone() {
    let mut bench = Bench::new();
    bench.host.metadata.finalizers.clear();
    let decision = bench.pass();
    assert_eq!(kinds(&decision), ["AddFinalizer"]);
    assert_eq!(decision.requeue, Duration::from_secs(1));
    assert_eq!(bench.state(), HostState::New);
}

#[test]
fn s003_paused_host_is_untouched() {
    let mut bench = Bench::at(Deploying);
    bench.host.metadata.finalizers.clear();
    bench.host.metadata.annotations.insert("cluster.x-k8s.io/paused".to_owned(), "whatever".to_owned());
    bench.sign(SignalKey::Provisioned, "provisioned");
    bench.wait(100_000);
    assert!(bench.decide(&down()).effects.is_empty());
}

#[test]
fn s004_claimed_host_is_in_use_and_says_by_whom() {
    let bench = Bench::at(InUse);
    assert!(bench.host.status.ready);
    assert_eq!(bench.host.status.error_message, "");
    let (truth, reason, message) = bench.host_condition("HostAvailable");
    assert_eq!((truth, reason.as_str()), (Truth::False, "HostClaimed"));
    assert_eq!(message, "Claimed by Beskar7Machine machine-01");
}

#[test]
fn s005_bound_inspect_moves_inuse_to_inspecting() {
    let mut bench = Bench::at(InUse);
    bench.sign(SignalKey::InspectionRequest, "inspect");
    bench.pass();
    assert_eq!(bench.state(), Inspecting);
    assert_eq!(bench.host.status.inspection_phase, Some(InspectionPhase::Booting));
    assert_eq!(bench.host.status.inspection_timestamp, Some(bench.now));
    assert_eq!(bench.host.status.run, bench.credentials.as_ref().map(|c| c.run.clone()));
    assert!(bench.signals.is_empty());
}

#[test]
fn s006_inspect_elsewhere_is_dropped_without_effect() {
    for state in [Available, Inspecting, Deploying, Ready, Error] {
        let mut bench = Bench::at(state);
        if bench.credentials.is_none() {
            bench.mint();
            bench.observe(&BmcObservation::NotAsked);
        }
        let before = bench.host.status.clone();
        bench.sign(SignalKey::InspectionRequest, "inspect");
        bench.observe(&BmcObservation::NotAsked);
        assert_eq!(bench.host.status, before, "{state:?}");
        assert!(bench.signals.is_empty(), "{state:?}");
    }
}

#[test]
fn s007_report_is_taken_while_inspecting() {
    let mut bench = Bench::at(Inspecting);
    bench.report(r#"{"manufacturer":"Example"}"#);
    bench.pass();
    assert_eq!(bench.state(), Inspecting);
    let status = &bench.host.status;
    assert_eq!(status.inspection_phase, Some(InspectionPhase::Complete));
    assert_eq!(status.inspection_report.as_ref().unwrap().manufacturer, "Example");
    assert_eq!(bench.host_condition("HostInspected").0, Truth::True);
    assert!(bench.signals.is_empty());
}

#[test]
fn s009_inspect_complete_begins_the_deployment_once() {
    let mut bench = Bench::at(Inspecting);
    bench.sign(SignalKey::InspectionRequest, "inspect-complete");
    bench.pass();
    assert_eq!(bench.state(), Inspecting, "not before the report is in");
    bench.report("{}");
    bench.pass();
    bench.sign(SignalKey::InspectionRequest, "inspect-complete");
    bench.pass();
    assert_eq!(bench.state(), Deploying);
    assert_eq!(bench.host.status.deploying_timestamp, Some(bench.now));
}

#[test]
fn s010_success_is_kept_until_a_pass_finds_ready() {
    let mut bench = Bench::at(Deploying);
    bench.sign(SignalKey::Provisioned, "provisioned");
    let decision = bench.pass();
    assert_eq!(bench.state(), Ready);
    assert!(bench.host.status.ready);
    assert_eq!(bench.signals.len(), 1);
    assert_eq!(decision.requeue, Duration::from_secs(1));
    bench.pass();
    assert_eq!(bench.state(), Ready);
    assert!(bench.signals.is_empty());
}

#[test]
fn s011_failure_ends_the_run_with_its_prefixed_reason() {
    let mut bench = Bench::at(Deploying);
    bench.sign(SignalKey::ProvisionFailed, "image digest mismatch");
    bench.pass();
    assert_eq!(bench.state(), Error);
    assert!(!bench.host.status.ready);
    assert_eq!(bench.host.status.error_message, "inspector reported deploy failure: image digest mismatch");
    assert!(bench.signals.is_empty());
}

#[test]
fn s013_failed_run_ignores_requests() {
    for value in ["inspect", "inspect-complete", "timeout"] {
        let mut bench = Bench::run_failed();
        let before = bench.host.status.clone();
        bench.sign(SignalKey::InspectionRequest, value);
        bench.pass();
        assert_eq!(bench.host.status, before, "{value}");
        assert!(bench.signals.is_empty());
    }
}

#[test]
fn s014_unknown_request_is_logged_and_removed() {
    let mut bench = Bench::at(Inspecting);
    bench.sign(SignalKey::InspectionRequest, "explode");
    let decision = bench.pass();
    assert_eq!(bench.state(), Inspecting);
    assert!(bench.signals.is_empty());
    assert!(decision.notes.iter().all(|n| !n.contains("explode")) && !decision.notes.is_empty());
}

#[test]
fn s015_ready_stays_ready() {
    let mut bench = Bench::at(Ready);
    bench.pass();
    assert_eq!(bench.state(), Ready);
}

#[test]
fn s017_unclaimed_error_heals() {
    let mut bench = Bench::new();
    bench.observe(&down());
    assert_eq!(bench.state(), Error);
    bench.pass();
    assert_eq!(bench.state(), Available);
    assert_eq!(bench.host.status.error_message, "");
}

#[test]
fn s030_callback_url_is_shown() {
    let bench = Bench::at(InUse);
    assert_eq!(bench.host.status.bootstrap.as_ref().unwrap().url, "https://controller.example:8082");
}

#[test]
fn s037_status_is_written_before_any_signal_is_removed() {
    let mut bench = Bench::at(Inspecting);
    bench.report("{}");
    let decision = bench.decide(&BmcObservation::NotAsked);
    assert_eq!(kinds(&decision), ["WriteStatus", "RemoveSignal"]);
    // The write failed: everything is still there, and the next pass does the same.
    let again = bench.decide(&BmcObservation::NotAsked);
    assert_eq!(again, decision);
}

#[test]
fn s038_a_success_whose_status_was_not_written_is_applied_again() {
    let mut bench = Bench::at(Deploying);
    bench.sign(SignalKey::Provisioned, "provisioned");
    let first = bench.decide(&BmcObservation::NotAsked);
    assert_eq!(first.status.state, Ready);
    assert_eq!(bench.decide(&BmcObservation::NotAsked), first, "nothing was carried out, so nothing is lost");
    bench.pass();
    assert_eq!(bench.state(), Ready);
}

#[test]
fn s040_second_inspect_after_the_report_does_not_begin_anew() {
    let mut bench = Bench::at(Inspecting);
    bench.report("{}");
    bench.pass();
    bench.sign(SignalKey::InspectionRequest, "inspect");
    bench.pass();
    assert_eq!(bench.host.status.inspection_phase, Some(InspectionPhase::Complete));
}

#[test]
fn s050_the_first_report_of_a_run_is_the_one_decided_on() {
    let mut bench = Bench::at(Inspecting);
    bench.report(r#"{"model":"first"}"#);
    bench.pass();
    bench.report(r#"{"model":"second"}"#);
    bench.pass();
    assert_eq!(bench.host.status.inspection_report.as_ref().unwrap().model, "first");
    assert!(bench.signals.is_empty());
}

#[test]
fn s104_s105_results_before_the_decision_are_kept_and_applied_after_it() {
    for (key, value, end) in
        [(SignalKey::Provisioned, "provisioned", Ready), (SignalKey::ProvisionFailed, "no space", Error)]
    {
        let mut bench = Bench::at(Inspecting);
        bench.report("{}");
        bench.sign(key, value);
        bench.pass();
        assert_eq!((bench.state(), bench.signals.len()), (Inspecting, 1));
        bench.pass();
        assert_eq!(bench.signals.len(), 1);
        bench.sign(SignalKey::InspectionRequest, "inspect-complete");
        bench.pass();
        assert_eq!(bench.state(), Deploying);
        bench.pass();
        assert_eq!(bench.state(), end);
    }
}

#[test]
fn s106_results_before_the_report_are_cleared() {
    for (key, value) in [(SignalKey::Provisioned, "provisioned"), (SignalKey::ProvisionFailed, "no space")] {
        let mut bench = Bench::at(Inspecting);
        bench.sign(key, value);
        bench.pass();
        assert_eq!((bench.state(), bench.signals.len()), (Inspecting, 0));
    }
}

#[test]
fn s109_what_comes_too_late_changes_nothing() {
    let mut bench = Bench::at(Ready);
    bench.sign(SignalKey::ProvisionFailed, "too late");
    bench.pass();
    assert_eq!((bench.state(), bench.signals.len()), (Ready, 0));
    let mut bench = Bench::run_failed();
    bench.sign(SignalKey::Provisioned, "provisioned");
    bench.pass();
    assert_eq!((bench.state(), bench.signals.len()), (Error, 0));
}

#[test]
fn failure_wins_when_both_wait() {
    let mut bench = Bench::at(Deploying);
    bench.sign(SignalKey::Provisioned, "provisioned");
    bench.sign(SignalKey::ProvisionFailed, "no space");
    bench.pass();
    assert_eq!(bench.state(), Error);
    bench.pass();
    assert_eq!((bench.state(), bench.signals.len()), (Error, 0));
}

#[test]
fn an_unreadable_report_is_dropped_and_moves_nothing() {
    for text in ["{", "[]", r#"{"cpus":7}"#] {
        let mut bench = Bench::at(Inspecting);
        bench.report(text);
        bench.pass();
        assert_eq!(bench.host.status.inspection_phase, Some(InspectionPhase::Booting), "{text}");
        assert!(bench.signals.is_empty());
    }
}

#[test]
fn s185_moved_host_is_adopted_before_anything_else() {
    let mut bench = Bench::at(InUse);
    bench.host.status = Default::default();
    bench.machine.spec.provider_id = Some("b7://default/host-01".parse().unwrap());
    let decision = bench.observe(&down());
    assert_eq!(bench.state(), Ready, "whatever the BMC says");
    assert!(bench.host.status.ready);
    let adopted = |e: &HostEffect| matches!(e, HostEffect::Record(h) if h.event == "Adopted");
    assert!(decision.effects.iter().any(adopted));
}

#[test]
fn s186_moved_host_waits_for_its_machine() {
    let mut bench = Bench::at(InUse);
    bench.host.status = Default::default();
    bench.machine.metadata.name = "another".parse().unwrap();
    bench.machine.spec.provider_id = Some("b7://default/host-01".parse().unwrap());
    bench.pass();
    assert_eq!(bench.state(), InUse);
}

#[test]
fn s190_conditions_without_a_reason_are_repaired_and_keep_their_time() {
    let mut bench = Bench::new();
    bench.pass();
    let since = bench.host.status.conditions[0].last_transition_time;
    for condition in &mut bench.host.status.conditions {
        condition.reason = String::new();
    }
    bench.wait(60);
    bench.observe(&BmcObservation::NotAsked);
    for condition in &bench.host.status.conditions {
        assert!(!condition.reason.is_empty());
        assert_eq!(condition.last_transition_time, since);
    }
}

#[test]
fn s192_interrupted_deployment_of_an_old_release_still_takes_its_result() {
    for (key, end) in [(SignalKey::Provisioned, Ready), (SignalKey::ProvisionFailed, Error)] {
        let mut bench = Bench::at(Error);
        bench.host.status.deploying_timestamp = Some(bench.now);
        bench.sign(key, if key == SignalKey::Provisioned { "provisioned" } else { "no space" });
        bench.observe(&down());
        assert_eq!(bench.state(), end);
        assert_eq!(bench.host.status.ready, end == Ready);
    }
}

#[test]
fn s202_inspect_that_lands_with_the_claim_is_dropped_and_sent_again() {
    let mut bench = Bench::at(Available);
    bench.host.spec.consumer_ref = Some(farrier_shared::lifecycle::claim::reference_to(&bench.machine));
    bench.mint();
    bench.sign(SignalKey::InspectionRequest, "inspect");
    bench.pass();
    assert_eq!((bench.state(), bench.signals.len()), (InUse, 0));
    bench.machine_pass();
    bench.pass();
    assert_eq!(bench.state(), Inspecting);
}

#[test]
fn a_pass_that_changes_nothing_writes_nothing() {
    for state in [Available, InUse, Inspecting, Deploying, Ready, Error] {
        let mut bench = Bench::at(state);
        let bmc = if state == Error { down() } else { BmcObservation::NotAsked };
        bench.observe(&bmc);
        assert!(kinds(&bench.observe(&bmc)).is_empty(), "{state:?}");
    }
}

#[test]
fn s157_a_failure_is_told_once() {
    let mut bench = Bench::run_failed();
    let told = |decision: &farrier_shared::lifecycle::HostDecision| {
        decision
            .effects
            .iter()
            .filter(|e| matches!(e, HostEffect::Record(_) | HostEffect::WriteStatus))
            .count()
    };
    bench.sign(SignalKey::ProvisionFailed, "inspector reported deploy failure: again");
    let again = bench.pass();
    assert_eq!(told(&again), 0, "{again:?}");
    assert!(bench.signals.is_empty());
    bench.machine_pass();
    assert_eq!(bench.machine.status.phase, Some(farrier_shared::resource::MachinePhase::Failed));
    // The token was cut, and its new end is shown.
    bench.pass();
    for _ in 0..3 {
        bench.wait(300);
        let effects = bench.machine_pass().effects;
        assert!(effects.is_empty(), "{effects:?}");
        assert_eq!(told(&bench.pass()), 0);
    }
}
