//! Who is woken when a host becomes free.

use std::time::Duration;

use farrier_shared::resource::machine::MachinePhase;
use farrier_shared::resource::{Beskar7Machine, HostState, PhysicalHost};

use super::fleet::{Fleet, key, name};
use crate::reconcile::{Key, Shell};
use crate::store::{Scope, Term};

/// Well below the minute after which a machine without a host looks again by itself.
const AT_ONCE: u64 = 5;

async fn claimed_by(fleet: &Fleet, host: &str, machine: &str) -> PhysicalHost {
    let has = |h: &PhysicalHost| h.spec.consumer_ref.as_ref().is_some_and(|c| c.name == machine);
    fleet.until(host, AT_ONCE, has).await
}

/// Waits until the machine has looked for a host, and then some, so that no look of its own is near.
async fn waits(fleet: &Fleet, machine: &str) {
    fleet.until_phase(machine, 5, MachinePhase::Pending).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
}

#[tokio::test(start_paused = true)]
async fn s020_a_host_that_becomes_free_wakes_a_machine_that_takes_any_at_once() {
    let fleet = Fleet::start().await;
    fleet.deploying("h1", "m1").await;
    fleet.add_machine("m2", Some("user-data")).await;
    waits(&fleet, "m2").await;
    fleet.store.delete::<Beskar7Machine>(&key("m1")).await.unwrap();
    claimed_by(&fleet, "h1", "m2").await;

    fleet.add_machine("m3", Some("user-data")).await;
    waits(&fleet, "m3").await;
    fleet.add_host("h2").await;
    claimed_by(&fleet, "h2", "m3").await;
}

#[tokio::test(start_paused = true)]
async fn s020_a_host_that_becomes_free_wakes_the_machine_that_wants_it_at_once() {
    let fleet = Fleet::start().await;
    for number in 1..=3 {
        let wants = name(&format!("h{number}"));
        let machine = format!("m{number}");
        fleet.add_machine_that(&machine, Some("user-data"), |spec| spec.host_name = Some(wants)).await;
        waits(&fleet, &machine).await;
    }
    fleet.add_host("h2").await;
    claimed_by(&fleet, "h2", "m2").await;
    fleet.until_host("h2", 10, HostState::Inspecting).await;
}

#[tokio::test(start_paused = true)]
async fn machines_that_want_another_host_are_not_read_for_this_one() {
    let mut fleet = Fleet::start().await;
    fleet.add_host("h1").await;
    fleet.until_host("h1", 5, HostState::Available).await;
    for number in 1..=3 {
        let wants = name(&format!("absent{number}"));
        fleet.add_machine_that(&format!("m{number}"), None, |spec| spec.host_name = Some(wants)).await;
    }
    fleet.add_machine_that("m4", None, |spec| spec.host_name = Some(name("h2"))).await;
    waits(&fleet, "m4").await;
    fleet.stop().await;
    let scope = Scope::Namespace { namespace: name("default"), after: None };
    let read = fleet.store.find::<Beskar7Machine>(Term::Waiting, scope, usize::MAX).await.unwrap();
    assert!(read.is_empty(), "{read:#?}");
    let shell = Shell::new(fleet.context());
    assert_eq!(shell.who_wants(&key("h2")).await.unwrap(), [Key::Machine(key("m4"))]);
    // One that has its host looks for it no more.
    let mut installed = fleet.machine("m4").await;
    installed.status.phase = Some(MachinePhase::Provisioned);
    fleet.store.update(&installed).await.unwrap();
    assert_eq!(shell.who_wants(&key("h2")).await.unwrap(), []);
}
