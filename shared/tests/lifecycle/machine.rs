//! Groups A, G and I: the machine's own passes.

use std::time::Duration;

use farrier_shared::lifecycle::boot_plan::{BootPlan, InspectRequest};
use farrier_shared::lifecycle::{BootstrapRead, MachineEffect, OwnerRead};
use farrier_shared::resource::HostState::{Available, Deploying, Error, InUse, Inspecting, Ready};
use farrier_shared::resource::condition::{self, Truth};
use farrier_shared::resource::host::Address;
use farrier_shared::resource::machine::MachinePhase;

use crate::bench::{Bench, Store, down};
use crate::objects::machine_named;

#[test]
fn a_whole_run_from_claim_to_provisioned() {
    let mut bench = Bench::at(Available);
    bench.machine_pass();
    bench.pass();
    bench.machine_pass();
    bench.pass();
    assert_eq!(bench.state(), Inspecting);
    bench.report("{}");
    bench.pass();
    bench.machine_pass();
    bench.pass();
    assert_eq!(bench.state(), Deploying);
    bench.machine_pass();
    assert_eq!(bench.machine.status.phase, Some(MachinePhase::Provisioning));
    bench.sign(farrier_shared::lifecycle::SignalKey::Provisioned, "provisioned");
    bench.pass();
    bench.host.status.addresses =
        vec![Address { kind: "InternalIP".to_owned(), address: "10.0.0.5".to_owned() }];
    let decision = bench.machine_pass();
    let status = &bench.machine.status;
    assert!(status.ready);
    assert_eq!(status.phase, Some(MachinePhase::Provisioned));
    assert_eq!(status.initialization.as_ref().unwrap().provisioned, Some(true));
    assert_eq!(status.addresses, bench.host.status.addresses);
    assert_eq!(bench.machine.spec.provider_id.as_ref().unwrap().to_string(), "b7://default/host-01");
    assert_eq!(bench.machine_condition("InfrastructureReady").1, "Provisioned");
    assert_eq!(bench.machine_condition("Ready").0, Truth::True);
    assert!(decision.effects.iter().any(|e| matches!(e, MachineEffect::ClearBootOverride(_))));
    assert!(bench.machine_pass().effects.is_empty(), "s032: only once");
}

#[test]
fn s025_s026_infrastructure_ready_is_false_without_a_gap() {
    let mut bench = Bench::at(Available);
    let seen = |bench: &Bench| {
        condition::get(&bench.machine.status.conditions, "InfrastructureReady").map(|c| c.status)
    };
    bench.machine_pass();
    assert_eq!(seen(&bench), Some(Truth::False));
    for state in [InUse, Inspecting, Deploying, Error] {
        let mut bench = Bench::at(state);
        bench.machine_pass();
        assert_eq!(seen(&bench), Some(Truth::False), "{state:?}");
        assert_eq!(bench.machine_condition("Ready").0, Truth::False);
    }
}

#[test]
fn s027_a_machine_without_an_owner_waits() {
    let bench = Bench::at(Available);
    let decision = bench.decide_machine_among(std::slice::from_ref(&bench.host), OwnerRead::Missing);
    assert!(decision.effects.is_empty());
    assert_eq!(decision.requeue, Duration::from_secs(10));
}

#[test]
fn s028_the_host_stays_claimed_while_user_data_is_awaited() {
    let mut bench = Bench::at(InUse);
    bench.bootstrap = BootstrapRead::Unnamed;
    let decision = bench.machine_pass();
    assert_eq!(bench.machine_condition("BootstrapDataReady").1, "WaitingForBootstrapData");
    assert_eq!(decision.requeue, Duration::from_secs(30));
    assert!(bench.actions.is_empty());
}

#[test]
fn s029_missing_user_data_is_terminal_and_unreadable_is_not() {
    let mut bench = Bench::at(InUse);
    bench.bootstrap = BootstrapRead::Unreadable;
    assert!(bench.machine_pass().error.is_some());
    assert_ne!(bench.machine.status.phase, Some(MachinePhase::Failed));
    bench.bootstrap = BootstrapRead::Missing;
    bench.machine_pass();
    assert_eq!(bench.machine.status.phase, Some(MachinePhase::Failed));
    assert_eq!(bench.machine_condition("InfrastructureReady").1, "BootstrapDataUnavailable");
}

#[test]
fn s033_no_addresses_keep_the_old_ones() {
    let mut bench = Bench::at(Ready);
    let old = vec![Address { kind: "InternalIP".to_owned(), address: "10.0.0.5".to_owned() }];
    bench.machine.status.addresses = old.clone();
    bench.machine_pass();
    assert_eq!(bench.machine.status.addresses, old);
}

#[test]
fn s041_s201_the_request_is_judged_by_a_fresh_read() {
    let bench = Bench::at(InUse);
    let credentials = bench.credentials.clone().unwrap();
    let plan = BootPlan { host: bench.host.metadata.key(), booted_run: None };
    let ask = |bench: &Bench| plan.request(&bench.host, &bench.machine, &credentials);
    assert!(matches!(ask(&bench), InspectRequest::Write(_)));
    for state in [Inspecting, Error] {
        assert_eq!(ask(&Bench::at(state)), InspectRequest::NoLongerApplies);
    }
    let mut taken = Bench::at(InUse);
    taken.machine = machine_named("another");
    assert_eq!(ask(&taken), InspectRequest::NotOurs);
}

#[test]
fn s069_inspect_complete_that_cannot_be_signed_is_an_error() {
    let mut bench = Bench::at(Inspecting);
    bench.report("{}");
    bench.pass();
    bench.store = Store::Silent;
    let decision = bench.machine_pass();
    assert!(decision.error.is_some());
    assert!(bench.signals.is_empty());
    assert_ne!(bench.machine.status.phase, Some(MachinePhase::Failed));
}

#[test]
fn s153_failed_stays_failed() {
    let mut bench = Bench::at(Ready);
    bench.machine.status.phase = Some(MachinePhase::Failed);
    bench.machine_pass();
    assert_eq!(bench.machine.status.phase, Some(MachinePhase::Failed));
    assert!(!bench.machine.status.ready);
}

#[test]
fn s156_an_error_without_a_condition_is_terminal() {
    let mut bench = Bench::at(Error);
    bench.host.status.conditions.clear();
    bench.machine_pass();
    assert_eq!(bench.machine_condition("InfrastructureReady").1, "PhysicalHostError");
}

#[test]
fn s185_a_moved_machine_waits_for_its_host_and_never_inspects_again() {
    let mut bench = Bench::at(InUse);
    bench.machine.spec.provider_id = Some("b7://default/host-01".parse().unwrap());
    let decision = bench.machine_pass();
    assert_eq!(bench.machine_condition("InfrastructureReady").1, "WaitingForHostAdoption");
    assert!(!decision.effects.iter().any(|e| matches!(e, MachineEffect::Boot(_))));
}

#[test]
fn a_failed_boot_tells_the_operator_why() {
    let bench = Bench::at(InUse);
    let hosts = [bench.host.clone()];
    let facts = farrier_shared::lifecycle::MachineFacts {
        machine: &bench.machine,
        owner: OwnerRead::Standalone,
        bootstrap: BootstrapRead::Present,
        digest: &bench.digest,
        hosts: &hosts,
        credentials: bench.read(),
        signals: &[],
        booted_run: None,
        clock: farrier_shared::lifecycle::Clock {
            now: bench.now,
            listening_since: bench.now,
            progress: None,
            timings: &bench.timings,
        },
    };
    let decision = farrier_shared::lifecycle::decide_machine(&facts);
    let status = decision.after_failed_boot(&bench.machine.status, bench.now, "BMC busy");
    let shown = condition::get(&status.conditions, "InfrastructureReady").unwrap();
    assert_eq!(shown.message, "Booting the host failed, will retry: BMC busy");
    assert_eq!(status.phase, None, "not Inspecting before its boot succeeded");
    let data = condition::get(&status.conditions, "BootstrapDataReady").unwrap();
    assert_eq!(data.status, condition::Truth::True, "what else was decided stands");
}

#[test]
fn a_host_left_by_an_earlier_machine_of_the_same_name_is_let_go() {
    for state in [Inspecting, Deploying, Ready] {
        let mut bench = Bench::at(state);
        bench.machine.metadata.uid = "another".to_owned();
        bench.machine_pass();
        assert!(bench.host.spec.consumer_ref.is_none(), "{state:?}");
        assert!(!bench.machine.status.ready);
    }
    let mut moved = Bench::at(Ready);
    moved.machine.metadata.uid = "another".to_owned();
    moved.machine.spec.provider_id = Some("b7://default/host-01".parse().unwrap());
    moved.machine_pass();
    assert!(moved.machine.status.ready, "s185: a moved machine carries its host's id");
    let mut unread = Bench::at(Ready);
    unread.machine.metadata.uid = "another".to_owned();
    unread.store = Store::Silent;
    unread.machine_pass();
    assert!(unread.host.spec.consumer_ref.is_some(), "nothing is let go on a silent store");
}

#[test]
fn a_machine_waiting_for_a_bmc_keeps_its_host() {
    let mut bench = Bench::at(InUse);
    bench.observe(&down());
    bench.machine_pass();
    assert!(bench.host.spec.consumer_ref.is_some());
}
