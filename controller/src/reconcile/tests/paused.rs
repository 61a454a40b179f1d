//! Hosts and machines that the operator has paused.

use std::time::Duration;

use farrier_shared::lifecycle::reasons;
use farrier_shared::resource::condition;
use farrier_shared::resource::machine::MachinePhase;
use farrier_shared::resource::metadata::PAUSED;
use farrier_shared::resource::{Beskar7Machine, HostState, PhysicalHost, Resource};

use super::fleet::{Fleet, key};
use crate::store::StoreError;

/// Pauses an object or lets it go on, whatever else is written meanwhile.
async fn pause<R: Resource>(fleet: &Fleet, text: &str, paused: bool) {
    loop {
        let mut object: R = fleet.store.get(&key(text)).await.unwrap().unwrap();
        let annotations = &mut object.metadata_mut().annotations;
        if paused {
            annotations.insert(PAUSED.to_owned(), String::new());
        } else {
            annotations.remove(PAUSED);
        }
        match fleet.store.update(&object).await {
            Ok(_) => return,
            Err(StoreError::Conflict { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

fn waits_for_pause(machine: &Beskar7Machine) -> bool {
    let told = condition::get(&machine.status.conditions, reasons::INFRASTRUCTURE_READY);
    told.is_some_and(|c| c.reason == reasons::PHYSICAL_HOST_PAUSED)
}

#[tokio::test(start_paused = true)]
async fn a_paused_host_is_left_alone() {
    let fleet = Fleet::start().await;
    fleet.add_host("h1").await;
    let mut host = fleet.until_host("h1", 5, HostState::Available).await;
    host.metadata.annotations.insert(PAUSED.to_owned(), String::new());
    let host = fleet.store.update(&host).await.unwrap();
    fleet.bmc("h1", |b| b.dead = true);
    tokio::time::sleep(Duration::from_secs(1200)).await;
    assert_eq!(fleet.host("h1").await.metadata.resource_version, host.metadata.resource_version);
}

#[tokio::test(start_paused = true)]
async fn a_claimed_host_that_is_paused_is_not_booted_before_it_goes_on() {
    let fleet = Fleet::start().await;
    fleet.bmc("h1", |b| b.busy = u32::MAX);
    fleet.add_host("h1").await;
    fleet.add_machine("m1", Some("user-data")).await;
    fleet.until_host("h1", 60, HostState::InUse).await;
    pause::<PhysicalHost>(&fleet, "h1", true).await;
    fleet.until("m1", 60, waits_for_pause).await;
    let before = fleet.bmc("h1", |b| {
        b.busy = 0;
        b.log.len()
    });
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(fleet.bmc("h1", |b| b.log.len()), before, "nothing was asked of its BMC");
    pause::<PhysicalHost>(&fleet, "h1", false).await;
    fleet.until_host("h1", 60, HostState::Inspecting).await;
}

#[tokio::test(start_paused = true)]
async fn a_run_is_heard_for_a_while_after_a_pause_that_was_longer_than_its_time() {
    let fleet = Fleet::start().await;
    for (host, machine) in [("h1", "m1"), ("h2", "m2")] {
        fleet.add_host(host).await;
        fleet.add_machine(machine, Some("user-data")).await;
        fleet.until_host(host, 60, HostState::Inspecting).await;
    }
    pause::<PhysicalHost>(&fleet, "h1", true).await;
    pause::<Beskar7Machine>(&fleet, "m2", true).await;
    tokio::time::sleep(Duration::from_secs(1800)).await;
    pause::<PhysicalHost>(&fleet, "h1", false).await;
    pause::<Beskar7Machine>(&fleet, "m2", false).await;
    tokio::time::sleep(Duration::from_secs(240)).await;
    for (host, machine) in [("h1", "m1"), ("h2", "m2")] {
        assert_eq!(fleet.host(host).await.status.state, HostState::Inspecting);
        assert_ne!(fleet.machine(machine).await.status.phase, Some(MachinePhase::Failed));
        fleet.agent_reports(host).await;
        fleet.until_host(host, 30, HostState::Deploying).await;
    }
}
