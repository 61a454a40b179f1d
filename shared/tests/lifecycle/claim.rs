//! Claims: which host a machine may have.

use farrier_shared::lifecycle::claim::{NoHost, choose, claimed_host, reference_to};
use farrier_shared::lifecycle::{MachineEffect, OwnerRead};
use farrier_shared::resource::machine::{LabelRequirement, LabelSelector, MachinePhase};
use farrier_shared::resource::{Beskar7Machine, HostState, ObjectReference, PhysicalHost};

use crate::bench::Bench;
use crate::objects::{host_named, machine_named};

fn free(name: &str, labels: &[(&str, &str)]) -> PhysicalHost {
    let mut host = host_named(name);
    host.status.state = HostState::Available;
    host.metadata.labels = labels.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    host
}

fn selecting(key: &str, operator: &str, values: &[&str]) -> Beskar7Machine {
    let mut machine = machine_named("machine-01");
    machine.spec.host_selector = Some(LabelSelector {
        match_expressions: vec![LabelRequirement {
            key: key.to_owned(),
            operator: operator.to_owned(),
            values: values.iter().map(|v| (*v).to_owned()).collect(),
        }],
        ..LabelSelector::default()
    });
    machine
}

#[test]
fn s018_s019_only_free_hosts_are_candidates() {
    let machine = machine_named("machine-01");
    let mut taken = free("host-a", &[]);
    taken.spec.consumer_ref = Some(reference_to(&machine_named("other")));
    let mut paused = free("host-b", &[]);
    paused.metadata.annotations.insert("cluster.x-k8s.io/paused".to_owned(), String::new());
    let mut leaving = free("host-c", &[]);
    leaving.metadata.deletion_timestamp = Some(farrier_shared::contract::Time::from_unix(1));
    let mut elsewhere = free("host-d", &[]);
    elsewhere.metadata.namespace = "other".parse().unwrap();
    let hosts = [taken, paused, leaving, elsewhere, host_named("host-e"), free("host-f", &[])];
    assert_eq!(choose(&machine, None, &hosts).unwrap().metadata.name.as_str(), "host-f");
    assert_eq!(choose(&machine, None, &hosts[..5]).err(), Some(NoHost::NoneFree));
}

#[test]
fn s020_without_a_host_the_machine_waits() {
    let mut bench = Bench::new();
    let decision = bench.decide_machine_among(&[], OwnerRead::Standalone);
    bench.machine.status = decision.status.clone();
    assert_eq!(bench.machine_condition("PhysicalHostAssociated").1, "WaitingForPhysicalHost");
    assert_eq!(decision.requeue.as_secs(), 60);
}

#[test]
fn s021_no_host_outside_selector_zone_or_name_is_ever_claimed() {
    let hosts = [free("host-a", &[("rack", "1"), ("topology.kubernetes.io/zone", "north")])];
    let mut bench = Bench::new();
    bench.machine = selecting("rack", "In", &["2"]);
    let decision = bench.decide_machine_among(&hosts, OwnerRead::Standalone);
    bench.machine.status = decision.status.clone();
    assert_eq!(bench.machine_condition("PhysicalHostAssociated").1, "NoMatchingPhysicalHost");
    assert_ne!(bench.machine.status.phase, Some(MachinePhase::Failed));
    assert!(!decision.effects.iter().any(|e| matches!(e, MachineEffect::Claim(_))));
    let plain = machine_named("machine-01");
    assert!(choose(&plain, Some("north"), &hosts).is_ok());
    assert!(matches!(choose(&plain, Some("south"), &hosts), Err(NoHost::NoneMatches { .. })));
    let mut pinned = machine_named("machine-01");
    pinned.spec.host_name = Some("host-b".parse().unwrap());
    assert!(matches!(choose(&pinned, None, &hosts), Err(NoHost::NoneMatches { .. })));
    pinned.spec.host_name = Some("host-a".parse().unwrap());
    assert!(choose(&pinned, None, &hosts).is_ok());
}

#[test]
fn s022_a_selector_nobody_understands_is_terminal() {
    let bad = [
        ("rack", "Near", &["1"][..]),
        ("rack", "in", &["1"]),
        ("rack", "In", &[]),
        ("rack", "Exists", &["1"]),
        ("", "Exists", &[]),
        ("rack", "In", &["not a label"]),
    ];
    for (key, operator, values) in bad {
        let mut bench = Bench::new();
        bench.machine = selecting(key, operator, values);
        let decision = bench.decide_machine_among(&[free("host-a", &[])], OwnerRead::Standalone);
        bench.machine.status = decision.status;
        assert_eq!(bench.machine.status.phase, Some(MachinePhase::Failed), "{key} {operator}");
        assert_eq!(bench.machine_condition("PhysicalHostAssociated").1, "InvalidHostSelector");
        assert_eq!(bench.machine_condition("InfrastructureReady").1, "InvalidHostSelector");
    }
}

#[test]
fn s023_an_impossible_failure_domain_is_an_error_to_retry() {
    let bench = Bench::new();
    let owner = OwnerRead::Owned { cluster_paused: false, failure_domain: Some("not a label!") };
    let decision = bench.decide_machine_among(&[free("host-a", &[])], owner);
    assert!(decision.error.is_some());
    assert_ne!(decision.status.phase, Some(MachinePhase::Failed));
}

#[test]
fn selectors_match_as_kubernetes_matches() {
    let host = free("host-a", &[("rack", "1")]);
    let table = [
        ("rack", "In", &["1", "2"][..], true),
        ("rack", "In", &["2"], false),
        ("rack", "NotIn", &["2"], true),
        ("rack", "NotIn", &["1"], false),
        ("row", "NotIn", &["1"], true),
        ("rack", "Exists", &[], true),
        ("row", "Exists", &[], false),
        ("row", "DoesNotExist", &[], true),
        ("rack", "DoesNotExist", &[], false),
    ];
    for (key, operator, values, matches) in table {
        let machine = selecting(key, operator, values);
        let found = choose(&machine, None, std::slice::from_ref(&host)).is_ok();
        assert_eq!(found, matches, "{key} {operator} {values:?}");
    }
    let mut labels = machine_named("machine-01");
    labels.spec.host_selector = Some(LabelSelector::default());
    assert!(choose(&labels, None, std::slice::from_ref(&host)).is_ok());
}

#[test]
fn s145_a_host_is_found_by_its_claim_alone() {
    let machine = machine_named("machine-01");
    let mut host = free("host-a", &[]);
    assert!(claimed_host(&machine, std::slice::from_ref(&host)).is_none());
    host.spec.consumer_ref = Some(reference_to(&machine));
    assert!(claimed_host(&machine, std::slice::from_ref(&host)).is_some());
    let changes: [fn(&mut ObjectReference); 4] = [
        |r| r.kind = "Machine".to_owned(),
        |r| r.api_version = "v1".to_owned(),
        |r| r.namespace = "other".to_owned(),
        |r| r.name = "machine-02".to_owned(),
    ];
    for change in changes {
        let mut other = host.clone();
        change(other.spec.consumer_ref.as_mut().unwrap());
        assert!(claimed_host(&machine, &[other]).is_none());
    }
}

#[test]
fn an_installed_machine_never_takes_another_host() {
    let mut bench = Bench::new();
    bench.machine.spec.provider_id = Some("b7://default/gone".parse().unwrap());
    let decision = bench.decide_machine_among(&[free("host-a", &[])], OwnerRead::Standalone);
    assert!(!decision.effects.iter().any(|e| matches!(e, MachineEffect::Claim(_))));
}
