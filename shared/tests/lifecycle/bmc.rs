//! Group F: BMCs that are away, and power.

use std::time::Duration;

use farrier_shared::lifecycle::fault::{Failure, Refusal, Transient};
use farrier_shared::lifecycle::host_view::is_news;
use farrier_shared::lifecycle::{BmcFacts, BmcObservation, HostEffect, MachineEffect, PowerState, SignalKey};
use farrier_shared::resource::HostState::{Available, Deploying, Error, InUse, Inspecting, Ready};
use farrier_shared::resource::condition::Truth;
use farrier_shared::resource::host::{Address, HardwareDetails};
use farrier_shared::resource::machine::MachinePhase;

use crate::bench::{Bench, down};

fn failed(failure: Failure) -> BmcObservation {
    BmcObservation::Failed { failure, message: "certificate not trusted".to_owned() }
}

fn refused(refusal: Refusal) -> BmcObservation {
    BmcObservation::Refused { refusal, message: "not allowed".to_owned() }
}

#[test]
fn s116_classes_are_worded_as_the_contract_has_them() {
    let texts = [
        (Transient::Dns, "DNS lookup failed"),
        (Transient::TimedOut, "timed out"),
        (Transient::Refused, "connection refused"),
        (Transient::Reset, "connection reset"),
        (Transient::HostUnreachable, "host unreachable"),
        (Transient::Network, "network error"),
        (Transient::Closed, "connection closed"),
        (Transient::Http(503), "HTTP 503"),
    ];
    for (class, text) in texts {
        let mut bench = Bench::new();
        bench.observe(&BmcObservation::Unreachable { class });
        assert_eq!(bench.host.status.error_message, format!("BMC unreachable ({text}); retrying every 15s"));
    }
    assert_eq!(Transient::of_status(502), Some(Transient::Http(502)));
    assert_eq!(Transient::of_status(500), None);
    assert_eq!(Transient::of_status(401), None);
}

#[test]
fn s116_an_outage_before_the_run_is_an_error_and_said_once() {
    for state in [Available, InUse] {
        let mut bench = Bench::at(state);
        let decision = bench.observe(&down());
        assert_eq!(bench.state(), Error);
        assert!(!bench.host.status.ready);
        assert_eq!(bench.host_condition("RedfishConnectionReady").1, "BMCUnreachable");
        assert_eq!(decision.requeue, Duration::from_secs(15));
        bench.wait(15);
        assert!(bench.observe(&down()).effects.is_empty());
    }
}

/// What is no news is not looked at, so it must be nothing that a pass would make anything of.
#[test]
fn a_look_that_tells_a_settled_host_nothing_new_is_no_news() {
    let known = BmcFacts {
        power: Some(PowerState::On),
        details: Some(HardwareDetails { model: "Anvil".to_owned(), ..HardwareDetails::default() }),
        addresses: Some(vec![Address { kind: "InternalIP".to_owned(), address: "192.0.2.1".to_owned() }]),
    };
    let other = [
        BmcFacts { power: Some(PowerState::Off), ..known.clone() },
        BmcFacts { details: Some(HardwareDetails::default()), ..known.clone() },
        BmcFacts { addresses: Some(Vec::new()), ..known.clone() },
    ];
    for state in [Available, InUse, Inspecting, Deploying, Ready, Error] {
        let mut bench = Bench::at(state);
        bench.observe(&BmcObservation::Up(known.clone()));
        let settled = matches!(bench.state(), Available | Ready);
        for facts in [known.clone(), BmcFacts::default()] {
            let seen = BmcObservation::Up(facts);
            assert_eq!(is_news(&bench.host, &seen), !settled, "{state:?} {seen:?}");
            if settled {
                assert_eq!(bench.observe(&seen).effects, [], "{state:?} {seen:?}");
            }
        }
        for facts in other.clone() {
            assert!(is_news(&bench.host, &BmcObservation::Up(facts)), "{state:?}");
        }
        for trouble in [down(), failed(Failure::Login), refused(Refusal::CredentialsNotAuthorized)] {
            assert!(is_news(&bench.host, &trouble), "{state:?}");
        }
        bench.observe(&down());
        assert!(is_news(&bench.host, &BmcObservation::Up(known.clone())), "{state:?}");
    }
}

#[test]
fn a_fault_of_another_kind_within_error_is_told_and_another_wording_only_logged() {
    let mut bench = Bench::at(Available);
    bench.observe(&BmcObservation::Unreachable { class: Transient::Refused });
    let entries = |effects: &[HostEffect]| -> Vec<(String, String, String)> {
        let recorded = effects.iter().filter_map(|e| match e {
            HostEffect::Record(entry) => Some(entry),
            _ => None,
        });
        recorded.map(|e| (e.from.clone(), e.to.clone(), e.reason.clone())).collect()
    };
    let worded = bench.observe(&BmcObservation::Unreachable { class: Transient::TimedOut });
    assert_eq!(entries(&worded.effects), []);
    assert!(worded.notes.iter().any(|n| n.contains("timed out")), "{:?}", worded.notes);

    let other = bench.observe(&failed(Failure::Connection));
    let error = || "Error".to_owned();
    assert_eq!(entries(&other.effects), [(error(), error(), "certificate not trusted".to_owned())]);
    let same = bench.observe(&failed(Failure::Connection));
    assert!(same.effects.is_empty() && same.notes.is_empty(), "{same:?}");
}

#[test]
fn s117_s124_no_fault_touches_a_run() {
    let faults = [
        down(),
        failed(Failure::Connection),
        failed(Failure::Query),
        refused(Refusal::CredentialsNotAuthorized),
        refused(Refusal::MissingCredentials),
    ];
    for state in [Inspecting, Deploying, Ready] {
        for fault in &faults {
            let mut bench = Bench::at(state);
            bench.observe(fault);
            assert_eq!(bench.state(), state);
            assert_eq!(bench.host.status.error_message, "");
            assert_eq!(bench.host_condition("RedfishConnectionReady").0, Truth::False);
        }
    }
}

#[test]
fn s117_s121_reports_are_applied_during_an_outage() {
    let mut bench = Bench::at(Deploying);
    bench.sign(SignalKey::Provisioned, "provisioned");
    bench.observe(&down());
    assert_eq!(bench.state(), Ready);
    bench.machine_pass();
    assert_eq!(bench.machine.status.phase, Some(MachinePhase::Provisioned));
}

#[test]
fn s118_a_failed_run_keeps_its_message() {
    let mut bench = Bench::run_failed();
    let message = bench.host.status.error_message.clone();
    bench.observe(&down());
    assert_eq!(bench.host.status.error_message, message);
    bench.machine_pass();
    assert_eq!(bench.machine_condition("InfrastructureReady").1, "DeploymentFailed");
}

#[test]
fn s120_run_goes_on_after_an_outage_without_another_restart() {
    let mut bench = Bench::at(InUse);
    bench.machine_pass();
    assert_eq!(bench.actions.len(), 1);
    // The request is lost to the outage, the agent reports and even finishes meanwhile.
    bench.signals.clear();
    bench.observe(&down());
    assert_eq!(bench.state(), Error);
    bench.report(r#"{"model":"x"}"#);
    bench.observe(&down());
    bench.sign(SignalKey::Provisioned, "provisioned");
    bench.observe(&down());
    bench.machine_pass();
    assert_eq!(bench.machine_condition("InfrastructureReady").1, "WaitingForBMC");
    bench.pass();
    assert_eq!(bench.state(), InUse);
    bench.machine_pass();
    assert_eq!(bench.actions.len(), 1, "booted for this claim already");
    bench.pass();
    assert_eq!(bench.state(), Inspecting);
    bench.machine_pass();
    bench.pass();
    bench.pass();
    assert_eq!(bench.state(), Ready);
}

#[test]
fn s122_machine_waits_out_an_outage_and_recovers() {
    let mut bench = Bench::at(InUse);
    bench.machine_pass();
    bench.signals.clear();
    bench.observe(&down());
    let before = bench.machine.status.phase;
    let decision = bench.machine_pass();
    assert_eq!(bench.machine_condition("InfrastructureReady").1, "WaitingForBMC");
    assert_eq!(bench.machine.status.phase, before);
    assert_eq!(decision.requeue, Duration::from_secs(30));
    bench.pass();
    bench.machine_pass();
    assert_eq!(bench.machine_condition("InfrastructureReady").1, "PhysicalHostNotReady");
}

#[test]
fn s048_healed_condition_before_the_state_is_still_waiting() {
    let mut bench = Bench::at(Error);
    let now = bench.now;
    farrier_shared::resource::condition::set(
        &mut bench.host.status.conditions,
        "RedfishConnectionReady",
        Truth::True,
        "RedfishConnected",
        "",
        now,
    );
    bench.machine_pass();
    assert_eq!(bench.machine_condition("InfrastructureReady").1, "WaitingForBMC");
}

#[test]
fn s123_lasting_faults_before_the_run_are_terminal_and_retried_ever_slower() {
    let mut bench = Bench::at(InUse);
    let waits: Vec<u64> = (1..=12)
        .map(|n| {
            bench.bmc_failures = n;
            bench.decide(&failed(Failure::Connection)).requeue.as_secs()
        })
        .collect();
    assert_eq!(waits, [5, 10, 20, 40, 80, 160, 320, 640, 1280, 1800, 1800, 1800]);
    bench.observe(&failed(Failure::Connection));
    assert_eq!(bench.state(), Error);
    bench.wait(120);
    bench.observe(&failed(Failure::Connection));
    bench.machine_pass();
    let (_, reason, message) = bench.machine_condition("InfrastructureReady");
    assert_eq!(reason, "PhysicalHostError");
    assert_eq!(message, r#"PhysicalHost "host-01" in error state: certificate not trusted"#);
}

#[test]
fn a_fault_that_passes_within_two_minutes_costs_no_machine() {
    let faults = [
        failed(Failure::Connection),
        failed(Failure::Login),
        failed(Failure::Query),
        refused(Refusal::MissingCredentials),
        refused(Refusal::CaBundleFetchFailed),
    ];
    for fault in faults {
        let mut bench = Bench::at(InUse);
        bench.observe(&fault);
        assert_eq!(bench.state(), Error);
        bench.wait(119);
        bench.observe(&fault);
        bench.machine_pass();
        assert_eq!(bench.machine_condition("InfrastructureReady").1, "WaitingForBMC", "{fault:?}");
        bench.pass();
        assert_eq!(bench.state(), InUse, "{fault:?}");
        bench.machine_pass();
        assert_eq!(bench.machine_condition("InfrastructureReady").1, "PhysicalHostNotReady", "{fault:?}");
    }
}

#[test]
fn a_bmc_that_was_away_has_its_two_minutes_from_its_first_answer() {
    let mut bench = Bench::at(InUse);
    bench.observe(&down());
    bench.wait(180);
    bench.observe(&failed(Failure::Login));
    bench.machine_pass();
    assert_eq!(bench.machine_condition("InfrastructureReady").1, "WaitingForBMC");
    // Another fault is no new beginning; nobody there is.
    bench.wait(60);
    bench.observe(&failed(Failure::Query));
    bench.wait(59);
    bench.machine_pass();
    assert_eq!(bench.machine_condition("InfrastructureReady").1, "WaitingForBMC");
    bench.observe(&down());
    bench.wait(3600);
    bench.observe(&failed(Failure::Query));
    bench.wait(119);
    bench.machine_pass();
    assert_eq!(bench.machine_condition("InfrastructureReady").1, "WaitingForBMC");
    bench.wait(1);
    bench.machine_pass();
    assert_eq!(bench.machine_condition("InfrastructureReady").1, "PhysicalHostError");
}

#[test]
fn a_login_that_is_refused_is_tried_so_seldom_that_no_account_is_locked() {
    let mut bench = Bench::at(Ready);
    let waits: Vec<u64> = (1..=7)
        .map(|n| {
            bench.bmc_failures = n;
            bench.decide(&failed(Failure::Login)).requeue.as_secs()
        })
        .collect();
    assert_eq!(waits, [60, 120, 240, 480, 960, 1800, 1800]);
    bench.observe(&failed(Failure::Login));
    assert_eq!(bench.host_condition("RedfishConnectionReady").1, "RedfishConnectionFailed");
}

#[test]
fn s125_reasons_tell_which_part_failed() {
    let table = [
        (failed(Failure::Connection), "RedfishConnectionFailed"),
        (failed(Failure::Query), "RedfishQueryFailed"),
        (refused(Refusal::MissingCredentials), "MissingCredentials"),
        (refused(Refusal::CredentialsNotAuthorized), "CredentialsNotAuthorized"),
        (refused(Refusal::InsecureCaBundleConflict), "InsecureCABundleConflict"),
        (refused(Refusal::CaBundleFetchFailed), "CABundleFetchFailed"),
    ];
    for (fault, reason) in table {
        let mut bench = Bench::new();
        bench.observe(&fault);
        assert_eq!(bench.host_condition("RedfishConnectionReady").1, reason);
    }
}

#[test]
fn s126_parts_that_could_not_be_read_change_nothing() {
    let mut bench = Bench::at(Available);
    bench.host.status.observed_power_state = "On".to_owned();
    bench.observe(&BmcObservation::Up(Default::default()));
    assert_eq!(bench.state(), Available);
    assert_eq!(bench.host.status.observed_power_state, "On");
}

#[test]
fn s127_missing_consent_is_asked_for_at_leisure_and_waited_for() {
    let mut bench = Bench::at(InUse);
    let decision = bench.observe(&refused(Refusal::CredentialsNotAuthorized));
    assert_eq!(decision.requeue, Duration::from_secs(300));
    bench.machine_pass();
    assert_eq!(bench.machine_condition("InfrastructureReady").1, "WaitingForBMC");
    bench.pass();
    assert_eq!(bench.state(), InUse);
}

#[test]
fn s139_a_dark_host_is_switched_on_again_after_two_minutes() {
    let mut bench = Bench::at(Inspecting);
    let asks = |bench: &Bench| {
        let effects = bench.decide_machine().effects;
        effects.iter().any(|e| matches!(e, MachineEffect::EnsurePoweredOn(_)))
    };
    bench.host.status.observed_power_state = "Off".to_owned();
    bench.wait(120);
    assert!(!asks(&bench));
    bench.wait(1);
    assert!(asks(&bench));
    bench.host.status.observed_power_state = "On".to_owned();
    assert!(!asks(&bench));
    // An agent that has switched itself off is not followed by what the disk holds.
    bench.host.status.observed_power_state = "Off".to_owned();
    let hash = bench.credentials.as_ref().unwrap().nonce.sha256_hex();
    bench.host.status.bootstrap.as_mut().unwrap().boot_nonce_consumed_hash = hash;
    assert!(!asks(&bench));
}

#[test]
fn what_the_condition_says_holds_while_the_bmc_is_not_asked() {
    let mut bench = Bench::at(Available);
    bench.host.spec.consumer_ref = Some(farrier_shared::lifecycle::claim::reference_to(&bench.machine));
    bench.observe(&BmcObservation::NotAsked);
    assert_eq!(bench.state(), InUse);
    let mut unknown = Bench::new();
    let decision = unknown.observe(&BmcObservation::NotAsked);
    assert!(decision.ask_bmc_now);
    assert_eq!(unknown.state(), farrier_shared::resource::HostState::New);
}
