//! Runs that do not go as they should.

use std::time::Duration;

use farrier_shared::contract::callback::{Event, EventName, FAILURE_PREFIX};
use farrier_shared::lifecycle::reasons;
use farrier_shared::lifecycle::{Signal, SignalKey};
use farrier_shared::resource::condition;
use farrier_shared::resource::machine::MachinePhase;
use farrier_shared::resource::{Beskar7Machine, HostState};
use tokio::time::Instant;

use super::fleet::{Fleet, key};
use crate::progress::ProgressEntry;

fn reason(machine: &Beskar7Machine) -> String {
    condition::get(&machine.status.conditions, reasons::INFRASTRUCTURE_READY).unwrap().reason.clone()
}

#[tokio::test(start_paused = true)]
async fn a_failed_run_is_told_and_kept_until_release() {
    let fleet = Fleet::start().await;
    fleet.deploying("h1", "m1").await;
    let told = format!("{FAILURE_PREFIX}image digest mismatch");
    fleet.agent_says("h1", SignalKey::ProvisionFailed, &told, None).await;
    let host = fleet.until_host("h1", 10, HostState::Error).await;
    assert_eq!(host.status.error_message, told);
    let machine = fleet.until_phase("m1", 10, MachinePhase::Failed).await;
    assert_eq!(reason(&machine), reasons::DEPLOYMENT_FAILED);
    tokio::time::sleep(Duration::from_secs(900)).await;
    assert_eq!(fleet.host("h1").await.status.error_message, told);

    fleet.store.delete::<Beskar7Machine>(&key("m1")).await.unwrap();
    fleet.until_host("h1", 30, HostState::Available).await;
    assert_eq!(fleet.bmc("h1", |b| b.log.last().cloned()).as_deref(), Some("ForceOff"));
}

#[tokio::test(start_paused = true)]
async fn s067_signals_that_are_not_bound_to_the_run_are_dropped_without_effect() {
    let fleet = Fleet::start().await;
    fleet.deploying("h1", "m1").await;
    let forged =
        Signal { key: SignalKey::Provisioned, value: "provisioned".to_owned(), binding: None, report: None };
    fleet.store.put_signal(&key("h1"), &forged).await.unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(fleet.host("h1").await.status.state, HostState::Deploying);
    assert!(fleet.store.signals(&key("h1")).await.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_inspection_without_a_report_ends_by_itself() {
    let fleet = Fleet::start().await;
    fleet.add_host("h1").await;
    fleet.add_machine("m1", Some("user-data")).await;
    fleet.until_host("h1", 60, HostState::Inspecting).await;
    let begun = Instant::now();
    let machine = fleet.until_phase("m1", 720, MachinePhase::Failed).await;
    assert!(begun.elapsed() > Duration::from_secs(590), "{:?}", begun.elapsed());
    assert_eq!(reason(&machine), reasons::INSPECTION_TIMED_OUT);
    fleet.until_host("h1", 30, HostState::Error).await;
}

#[tokio::test(start_paused = true)]
async fn a_deployment_that_stands_still_ends_early_and_one_that_moves_goes_on() {
    let fleet = Fleet::start().await;
    fleet.deploying("h1", "m1").await;
    let run = fleet.credentials("h1").await.run;
    let tell = |bytes| ProgressEntry {
        event: Event {
            event: EventName::Installing,
            message: String::new(),
            run: Some(run.clone()),
            step: Some("write".to_owned()),
            bytes: Some(bytes),
            total: None,
            bytes_per_second: None,
        },
        at: fleet.clock.now(),
    };
    // Half an hour: longer than a deployment that tells nothing may take.
    for minute in 1..=30 {
        fleet.progress.record(&key("h1"), tell(minute * 1000));
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(fleet.host("h1").await.status.state, HostState::Deploying, "minute {minute}");
    }
    // The same bytes again are no progress.
    for _ in 0..6 {
        fleet.progress.record(&key("h1"), tell(30_000));
        tokio::time::sleep(Duration::from_secs(60)).await;
    }
    let host = fleet.until_host("h1", 60, HostState::Error).await;
    assert!(host.status.error_message.contains("write"), "{}", host.status.error_message);
    fleet.until_phase("m1", 60, MachinePhase::Failed).await;
}

#[tokio::test(start_paused = true)]
async fn s158_a_failed_machine_takes_no_host_that_becomes_free() {
    let fleet = Fleet::start().await;
    fleet.deploying("h1", "m1").await;
    fleet.agent_says("h1", SignalKey::ProvisionFailed, &format!("{FAILURE_PREFIX}no space"), None).await;
    fleet.until_phase("m1", 60, MachinePhase::Failed).await;
    fleet.add_host("h2").await;
    fleet.until_host("h2", 5, HostState::Available).await;
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert!(fleet.host("h2").await.spec.consumer_ref.is_none());
    assert_eq!(fleet.machine("m1").await.status.phase, Some(MachinePhase::Failed));
}

#[tokio::test(start_paused = true)]
async fn s046_a_machine_that_is_gone_in_the_middle_of_its_pass_stops_nothing_else() {
    let fleet = Fleet::start().await;
    fleet.add_host("h1").await;
    fleet.until_host("h1", 5, HostState::Available).await;
    fleet.bmc("h1", |b| b.hangs = true);
    fleet.add_machine("m1", Some("user-data")).await;
    fleet.until_host("h1", 60, HostState::InUse).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    // As an operator with the database in his hands would: no release, no finalizer.
    let mut machine = fleet.machine("m1").await;
    machine.metadata.finalizers.clear();
    fleet.store.update(&machine).await.unwrap();
    fleet.store.delete::<Beskar7Machine>(&key("m1")).await.unwrap();
    assert!(fleet.store.get::<Beskar7Machine>(&key("m1")).await.unwrap().is_none());
    tokio::time::sleep(Duration::from_secs(120)).await;
    fleet.add_host("h2").await;
    fleet.add_machine("m2", Some("user-data")).await;
    fleet.until_host("h2", 60, HostState::Inspecting).await;
    assert!(fleet.store.get::<Beskar7Machine>(&key("m1")).await.unwrap().is_none(), "not brought back");
}

#[tokio::test(start_paused = true)]
async fn s059_a_forged_report_takes_no_other_hosts_report_along() {
    let fleet = Fleet::start().await;
    for (host, machine) in [("h1", "m1"), ("h2", "m2")] {
        fleet.add_host(host).await;
        fleet.add_machine(machine, Some("user-data")).await;
        fleet.until_host(host, 60, HostState::Inspecting).await;
    }
    // The report of h2 waits, since nobody may touch h2.
    let mut paused = fleet.host("h2").await;
    paused.metadata.annotations.insert("cluster.x-k8s.io/paused".to_owned(), String::new());
    fleet.store.update(&paused).await.unwrap();
    fleet.agent_reports("h2").await;
    let waiting = fleet.store.signals(&key("h2")).await.unwrap();
    let forged = Signal { binding: None, ..waiting[0].clone() };
    fleet.store.put_signal(&key("h1"), &forged).await.unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(fleet.store.signals(&key("h1")).await.unwrap().is_empty());
    assert_eq!(fleet.host("h1").await.status.inspection_report, None);
    assert_eq!(fleet.store.signals(&key("h2")).await.unwrap(), waiting);
}

#[tokio::test(start_paused = true)]
async fn a_machine_whose_script_no_firmware_would_take_is_not_booted_and_says_why() {
    let fleet = Fleet::start().await;
    fleet.add_host("h1").await;
    let long = format!("http://farrier.example/{}", "x".repeat(2000));
    fleet
        .add_machine_that("m1", Some("user-data"), |spec| spec.inspection_image_url = long.parse().unwrap())
        .await;
    fleet.until_host("h1", 60, HostState::InUse).await;
    tokio::time::sleep(Duration::from_secs(900)).await;
    assert!(fleet.bmc("h1", |b| b.log.is_empty()), "nothing is powered on for it");
    assert!(fleet.store.credentials(&key("h1")).await.unwrap().is_none(), "nor is anything minted");
    let machine = fleet.machine("m1").await;
    let told = condition::get(&machine.status.conditions, reasons::INFRASTRUCTURE_READY).unwrap();
    assert!(told.message.contains("boot script is") && told.message.contains("4096"), "{}", told.message);
    let failed = fleet.store.history(&key("h1")).await.unwrap();
    assert_eq!(failed.iter().filter(|e| e.event == "BootFailed").count(), 1);

    let mut mended = machine;
    mended.spec.inspection_image_url = "http://farrier.example/inspection".parse().unwrap();
    fleet.store.update(&mended).await.unwrap();
    fleet.until_host("h1", 5, HostState::Inspecting).await;
}
