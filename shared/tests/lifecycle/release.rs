//! Group H: release and deletion.

use farrier_shared::lifecycle::{
    BmcObservation, HostEffect, MachineEffect, OwnerRead, PowerAction, SignalKey,
};
use farrier_shared::resource::HostState::{self, Available, Deploying, Error, InUse, Inspecting, Ready};
use farrier_shared::resource::condition::Truth;

use crate::bench::{Bench, down};
use crate::objects::host_named;

fn deleted(state: HostState) -> Bench {
    let mut bench = Bench::at(state);
    bench.machine.metadata.deletion_timestamp = Some(bench.now);
    bench
}

#[test]
fn s143_s144_power_goes_politely_only_where_somebody_listens() {
    let table = [
        (Ready, PowerAction::GracefulShutdown),
        (InUse, PowerAction::GracefulShutdown),
        (Inspecting, PowerAction::ForceOff),
        (Deploying, PowerAction::ForceOff),
        (Error, PowerAction::ForceOff),
    ];
    for (state, action) in table {
        let mut bench = deleted(state);
        let decision = bench.machine_pass();
        assert_eq!(bench.actions, [action], "{state:?}");
        assert!(matches!(decision.effects[0], MachineEffect::ClearBootOverride(_)));
        assert_eq!(decision.effects.last(), Some(&MachineEffect::RemoveFinalizer));
        assert!(bench.host.spec.consumer_ref.is_none());
        bench.pass();
        assert_eq!(bench.state(), Available);
    }
}

#[test]
fn s148_force_release_asks_no_bmc() {
    let mut bench = deleted(Deploying);
    let key = "infrastructure.cluster.x-k8s.io/force-release".to_owned();
    bench.machine.metadata.annotations.insert(key.clone(), "yes".to_owned());
    assert!(bench.decide_machine().effects.iter().any(|e| matches!(e, MachineEffect::Power { .. })));
    bench.machine.metadata.annotations.insert(key, "true".to_owned());
    bench.machine_pass();
    assert!(bench.actions.is_empty());
    assert!(bench.host.spec.consumer_ref.is_none());
}

#[test]
fn s149_without_a_host_only_the_finalizer_goes() {
    let bench = deleted(Available);
    let decision = bench.decide_machine_among(&[host_named("other")], OwnerRead::Standalone);
    assert_eq!(decision.effects, [MachineEffect::RemoveFinalizer]);
}

#[test]
fn s150_a_deleted_host_goes_at_once_and_leaves_a_line() {
    let mut bench = Bench::at(Deploying);
    bench.host.metadata.deletion_timestamp = Some(bench.now);
    let decision = bench.observe(&down());
    let line = |e: &HostEffect| matches!(e, HostEffect::Record(h) if h.event == "DeletingClaimedHost");
    assert!(decision.effects.iter().any(line));
    assert!(decision.effects.contains(&HostEffect::RemoveFinalizer));
    assert!(!decision.effects.contains(&HostEffect::WriteStatus));
}

#[test]
fn s151_a_paused_machine_waits_even_with_its_deletion() {
    let mut bench = deleted(Ready);
    bench.machine.metadata.annotations.insert("cluster.x-k8s.io/paused".to_owned(), String::new());
    assert!(bench.decide_machine().effects.is_empty());
    let owner = OwnerRead::Owned { cluster_paused: true, failure_domain: None };
    bench.machine.metadata.annotations.clear();
    assert!(bench.decide_machine_among(std::slice::from_ref(&bench.host), owner).effects.is_empty());
}

#[test]
fn s188_a_machine_deleted_for_a_move_leaves_its_host_alone() {
    let mut bench = deleted(Ready);
    let key = "clusterctl.cluster.x-k8s.io/delete-for-move".to_owned();
    bench.machine.metadata.annotations.insert(key, String::new());
    let decision = bench.machine_pass();
    assert_eq!(decision.effects, [MachineEffect::RemoveFinalizer]);
    assert!(bench.host.spec.consumer_ref.is_some());
}

#[test]
fn s031_s034_a_released_host_carries_nothing_of_its_last_run() {
    let failed = || {
        let mut bench = Bench::run_failed();
        bench.sign(SignalKey::Provisioned, "provisioned");
        bench
    };
    for mut bench in [Bench::at(Inspecting), Bench::at(Deploying), Bench::at(Ready), failed()] {
        bench.sign(SignalKey::ProvisionFailed, "late");
        bench.host.spec.consumer_ref = None;
        bench.observe(&BmcObservation::NotAsked);
        let status = &bench.host.status;
        assert_eq!(status.state, Available);
        assert_eq!((&status.run, status.inspection_phase), (&None, None));
        assert_eq!((status.inspection_timestamp, status.deploying_timestamp), (None, None));
        assert_eq!(status.error_message, "");
        assert!(bench.signals.is_empty());
        let (truth, reason, _) = bench.host_condition("HostInspected");
        assert_eq!((truth, reason.as_str()), (Truth::False, "HostReleased"));
    }
}

#[test]
fn what_release_keeps_is_what_operators_want_to_see() {
    let mut bench = Bench::at(Ready);
    bench.host.spec.consumer_ref = None;
    bench.pass();
    assert!(bench.host.status.inspection_report.is_some());
    assert!(bench.host.status.bootstrap.is_some());
}

#[test]
fn a_host_released_during_an_outage_is_not_offered_before_its_bmc_answers() {
    let mut bench = Bench::at(Ready);
    bench.observe(&down());
    bench.host.spec.consumer_ref = None;
    bench.observe(&BmcObservation::NotAsked);
    assert_eq!(bench.state(), Error);
    bench.pass();
    assert_eq!(bench.state(), Available);
}
