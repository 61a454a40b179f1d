//! Hosts that the operator has paused: nothing is done to them, and nothing is held against them.

use farrier_shared::lifecycle::{MachineEffect, SignalKey};
use farrier_shared::resource::HostState::{self, Deploying, Error, InUse, Inspecting, Ready};
use farrier_shared::resource::condition::Truth;
use farrier_shared::resource::machine::MachinePhase;

use crate::bench::Bench;

fn paused(state: HostState) -> Bench {
    let mut bench = Bench::at(state);
    bench.pause_host(true);
    bench
}

#[test]
fn s003_a_machine_waits_for_its_paused_host_and_says_so() {
    for state in [InUse, Inspecting, Deploying, Ready, Error] {
        let mut bench = paused(state);
        bench.host.status.observed_power_state = "Off".to_owned();
        bench.wait(100_000);
        let decision = bench.machine_pass();
        assert_eq!(decision.effects, [MachineEffect::WriteStatus], "{state:?}");
        assert_ne!(bench.machine.status.phase, Some(MachinePhase::Failed), "{state:?}");
        let told = bench.machine_condition("InfrastructureReady");
        assert_eq!(
            told,
            (Truth::False, "PhysicalHostPaused".to_owned(), "The host is paused".to_owned()),
            "{state:?}"
        );
        assert_eq!(bench.machine_condition("PhysicalHostAssociated").0, Truth::True);
        assert!(bench.machine_pass().effects.is_empty(), "{state:?}: said once");
    }
}

#[test]
fn an_installed_machine_stays_so_on_a_paused_host() {
    let mut bench = Bench::at(Ready);
    bench.machine_pass();
    assert!(bench.machine.status.ready);
    bench.pause_host(true);
    assert!(bench.machine_pass().effects.is_empty());
    assert!(bench.machine.status.ready);
}

#[test]
fn a_failed_run_of_a_paused_host_fails_its_machine_once_it_is_paused_no_more() {
    let mut bench = Bench::run_failed();
    bench.pause_host(true);
    bench.machine_pass();
    assert_ne!(bench.machine.status.phase, Some(MachinePhase::Failed));
    bench.pause_host(false);
    bench.machine_pass();
    assert_eq!(bench.machine_condition("InfrastructureReady").1, "DeploymentFailed");
}

#[test]
fn a_claim_of_a_paused_host_boots_it_when_it_is_paused_no_more() {
    let mut bench = paused(InUse);
    bench.machine_pass();
    assert!(bench.actions.is_empty());
    bench.pause_host(false);
    bench.machine_pass();
    assert_eq!(bench.actions.len(), 1);
    assert_eq!(bench.machine_condition("InfrastructureReady").1, "PhysicalHostNotReady");
}

#[test]
fn a_run_whose_time_ended_in_a_pause_has_a_while_to_be_heard() {
    let mut bench = paused(Inspecting);
    bench.wait(3600);
    bench.pause_host(false);
    bench.listening_since = bench.now;
    bench.wait(299);
    bench.machine_pass();
    bench.pass();
    assert_ne!(bench.machine.status.phase, Some(MachinePhase::Failed));
    assert_eq!(bench.state(), Inspecting);
    bench.wait(1);
    bench.machine_pass();
    assert_eq!(bench.machine_condition("InfrastructureReady").1, "InspectionTimedOut");

    // What arrived in the pause is taken first.
    let mut heard = paused(Deploying);
    heard.sign(SignalKey::Provisioned, "provisioned");
    heard.wait(100_000);
    heard.pass();
    assert_eq!(heard.state(), Deploying);
    heard.pause_host(false);
    heard.pass();
    assert_eq!(heard.state(), Ready);
}

#[test]
fn a_paused_host_is_released_with_its_machine_and_its_power_left_alone() {
    for state in [InUse, Inspecting, Deploying, Ready, Error] {
        let mut bench = paused(state);
        bench.machine.metadata.deletion_timestamp = Some(bench.now);
        let decision = bench.machine_pass();
        assert!(bench.host.spec.consumer_ref.is_none(), "{state:?}");
        assert!(bench.actions.is_empty(), "{state:?}");
        assert!(!decision.effects.iter().any(|e| matches!(e, MachineEffect::ClearBootOverride(_))));
        let told = decision.effects.iter().find_map(|e| match e {
            MachineEffect::Record { entry, .. } => Some(entry.reason.as_str()),
            _ => None,
        });
        let expected = "machine machine-01 is deleted; the host is paused, its power stays as it is";
        assert_eq!(told, Some(expected), "{state:?}");
    }
}

#[test]
fn a_paused_host_that_an_earlier_machine_left_is_let_go_when_it_is_paused_no_more() {
    let mut bench = paused(Ready);
    bench.machine.metadata.uid = "another".to_owned();
    bench.machine_pass();
    assert!(bench.host.spec.consumer_ref.is_some());
    bench.pause_host(false);
    bench.machine_pass();
    assert!(bench.host.spec.consumer_ref.is_none());
}
