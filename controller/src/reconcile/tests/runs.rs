//! Runs that go as they should.

use std::collections::BTreeSet;
use std::time::Duration;

use farrier_shared::contract::ProviderId;
use farrier_shared::lifecycle::SignalKey;
use farrier_shared::lifecycle::reasons;
use farrier_shared::resource::condition::{self, Truth};
use farrier_shared::resource::host::BootMode;
use farrier_shared::resource::machine::MachinePhase;
use farrier_shared::resource::secret::USER_DATA_OF;
use farrier_shared::resource::{Beskar7Machine, HostState, ObjectMeta, PhysicalHost, Secret};

use super::fleet::{Fleet, key};

#[tokio::test(start_paused = true)]
async fn a_host_goes_from_new_to_ready_and_its_machine_with_it() {
    let fleet = Fleet::start().await;
    fleet.add_host("h1").await;
    let host = fleet.until_host("h1", 5, HostState::Available).await;
    assert!(host.status.ready);
    assert_eq!(host.status.observed_power_state, "Off");

    fleet.add_machine("m1", Some("user-data")).await;
    let host = fleet.until_host("h1", 10, HostState::Inspecting).await;
    assert_eq!(host.spec.consumer_ref.as_ref().unwrap().name, "m1");
    assert_eq!(fleet.bmc("h1", |b| b.log.join(" ")), "pxe On");
    let credentials = fleet.credentials("h1").await;
    assert_eq!(host.status.run.as_deref(), Some(credentials.run.as_str()));

    fleet.agent_reports("h1").await;
    let host = fleet.until_host("h1", 10, HostState::Deploying).await;
    assert_eq!(host.status.inspection_report.unwrap().manufacturer, "QEMU");
    fleet.until_phase("m1", 5, MachinePhase::Provisioning).await;

    fleet.agent_says("h1", SignalKey::Provisioned, "provisioned", None).await;
    fleet.until_host("h1", 10, HostState::Ready).await;
    let machine = fleet.until_phase("m1", 10, MachinePhase::Provisioned).await;
    assert!(machine.status.ready);
    assert_eq!(machine.spec.provider_id, Some(ProviderId::of(&key("h1"))));
    let infrastructure = condition::get(&machine.status.conditions, reasons::INFRASTRUCTURE_READY).unwrap();
    assert_eq!(infrastructure.status, Truth::True);

    // Once all is done: one boot only, its override cleared, its token cut, nothing waiting.
    tokio::time::sleep(Duration::from_secs(30)).await;
    let log = fleet.bmc("h1", |b| b.log.clone());
    assert_eq!(log.iter().filter(|l| *l == "On" || *l == "ForceRestart").count(), 1, "{log:?}");
    assert_eq!(log.last().map(String::as_str), Some("clear"), "{log:?}");
    let cut = fleet.credentials("h1").await;
    assert_eq!(cut.token, credentials.token);
    assert!(cut.token_expires_at <= fleet.clock.now() + Duration::from_secs(300));
    assert!(fleet.store.signals(&key("h1")).await.unwrap().is_empty());

    let history = fleet.store.history(&key("h1")).await.unwrap();
    let states: Vec<_> = history.iter().filter(|e| e.from != e.to).map(|e| e.to.as_str()).collect();
    assert_eq!(states, ["Available", "InUse", "Inspecting", "Deploying", "Ready"]);
}

#[tokio::test(start_paused = true)]
async fn addresses_are_read_anew_for_half_an_hour_after_an_installation_and_not_before_or_later() {
    let fleet = Fleet::start().await;
    fleet.deploying("h1", "m1").await;
    assert_eq!(fleet.bmc("h1", |b| b.distrusted), 0);
    fleet.agent_says("h1", SignalKey::Provisioned, "provisioned", None).await;
    fleet.until_phase("m1", 10, MachinePhase::Provisioned).await;
    tokio::time::sleep(Duration::from_secs(2000)).await;
    let anew = fleet.bmc("h1", |b| b.distrusted);
    assert!((6..=9).contains(&anew), "{anew}");
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(fleet.bmc("h1", |b| b.distrusted), anew);
}

#[tokio::test(start_paused = true)]
async fn a_host_boots_in_the_mode_it_is_said_to_boot_in() {
    let fleet = Fleet::start().await;
    for (name, mode) in [("h1", BootMode::Legacy), ("h2", BootMode::Uefi)] {
        fleet.add_host(name).await;
        let mut host = fleet.until_host(name, 5, HostState::Available).await;
        host.spec.boot_mode = Some(mode);
        fleet.store.update(&host).await.unwrap();
    }
    fleet.add_machine("m1", Some("user-data")).await;
    fleet.add_machine("m2", Some("user-data")).await;
    fleet.until_host("h1", 60, HostState::Inspecting).await;
    fleet.until_host("h2", 60, HostState::Inspecting).await;
    assert_eq!(fleet.bmc("h1", |b| b.log.join(" ")), "pxe(Legacy) On");
    assert_eq!(fleet.bmc("h2", |b| b.log.join(" ")), "pxe(Uefi) On");
    // Switched on again, because it did not come up.
    fleet.bmc("h1", |b| (b.on, b.log) = (false, vec![]));
    tokio::time::sleep(Duration::from_secs(400)).await;
    assert_eq!(fleet.bmc("h1", |b| b.log.join(" ")), "pxe(Legacy) On");
}

#[tokio::test(start_paused = true)]
async fn s152_a_deleted_machine_lets_its_host_go_for_the_next() {
    let fleet = Fleet::start().await;
    fleet.deploying("h1", "m1").await;
    fleet.agent_says("h1", SignalKey::Provisioned, "provisioned", None).await;
    fleet.until_phase("m1", 10, MachinePhase::Provisioned).await;
    fleet.bmc("h1", |b| b.log.clear());
    fleet.store.delete::<Beskar7Machine>(&key("m1")).await.unwrap();
    let host = fleet.until_host("h1", 30, HostState::Available).await;
    assert!(host.spec.consumer_ref.is_none());
    assert!(fleet.store.get::<Beskar7Machine>(&key("m1")).await.unwrap().is_none());
    // Nothing is booted to clear its disks: what is on them stays.
    tokio::time::sleep(Duration::from_secs(1800)).await;
    assert_eq!(fleet.bmc("h1", |b| b.log.clone()), ["clear", "GracefulShutdown"]);
    assert_eq!(fleet.host("h1").await.status.state, HostState::Available);

    let before = fleet.credentials("h1").await;
    fleet.add_machine("m2", Some("user-data")).await;
    fleet.until_host("h1", 30, HostState::Inspecting).await;
    let after = fleet.credentials("h1").await;
    assert_ne!(before.run, after.run);
    assert_ne!(before.token, after.token);
}

#[tokio::test(start_paused = true)]
async fn of_many_machines_and_fewer_hosts_each_host_gets_exactly_one() {
    let fleet = Fleet::start().await;
    for number in 0..64 {
        fleet.add_machine(&format!("m{number}"), None).await;
    }
    for number in 0..32 {
        fleet.add_host(&format!("h{number}")).await;
    }
    let mut winners = BTreeSet::new();
    for number in 0..32 {
        let host = fleet
            .until(&format!("h{number}"), 120, |h: &PhysicalHost| {
                h.spec.consumer_ref.is_some() && h.status.state == HostState::InUse
            })
            .await;
        winners.insert(host.spec.consumer_ref.unwrap().name);
    }
    assert_eq!(winners.len(), 32);
    tokio::time::sleep(Duration::from_secs(120)).await;
    for number in 0..32 {
        let now = fleet.host(&format!("h{number}")).await.spec.consumer_ref.unwrap().name;
        assert!(winners.contains(&now), "h{number} changed hands");
    }
}

#[tokio::test(start_paused = true)]
async fn s043_a_controller_that_dies_at_any_point_is_continued_by_the_next_without_another_boot() {
    let mut fleet = Fleet::start().await;
    fleet.add_host("h1").await;
    fleet.until_host("h1", 5, HostState::Available).await;
    fleet.restart().await;
    fleet.add_machine("m1", Some("user-data")).await;
    fleet.until_host("h1", 30, HostState::Inspecting).await;
    fleet.restart().await;
    fleet.agent_reports("h1").await;
    fleet.restart().await;
    fleet.until_host("h1", 30, HostState::Deploying).await;
    fleet.restart().await;
    fleet.agent_says("h1", SignalKey::Provisioned, "provisioned", None).await;
    fleet.restart().await;
    fleet.until_phase("m1", 30, MachinePhase::Provisioned).await;
    let log = fleet.bmc("h1", |b| b.log.clone());
    assert_eq!(log.iter().filter(|l| *l == "On" || *l == "ForceRestart").count(), 1, "{log:?}");
}

#[tokio::test(start_paused = true)]
async fn a_machine_without_user_data_waits_with_its_host_and_goes_on_when_it_comes() {
    let fleet = Fleet::start().await;
    fleet.add_host("h1").await;
    fleet.add_machine("m1", None).await;
    let waiting = |m: &Beskar7Machine| {
        condition::get(&m.status.conditions, reasons::BOOTSTRAP_DATA_READY)
            .is_some_and(|c| c.reason == reasons::WAITING_FOR_BOOTSTRAP_DATA)
    };
    let mut machine = fleet.until("m1", 30, waiting).await;
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert_eq!(fleet.host("h1").await.status.state, HostState::InUse);
    assert!(fleet.bmc("h1", |b| b.log.is_empty()));
    machine = fleet.machine(machine.metadata.name.as_str()).await;
    machine.spec.bootstrap = Some(farrier_shared::resource::machine::MachineBootstrap {
        data_secret_name: super::fleet::name("user-data"),
    });
    fleet.store.update(&machine).await.unwrap();
    fleet.until_host("h1", 10, HostState::Inspecting).await;
}

#[tokio::test(start_paused = true)]
async fn user_data_made_for_a_machine_goes_with_it_and_any_other_stays() {
    let fleet = Fleet::start().await;
    for (secret, made_for) in [("m1-data", "m1"), ("m2-data", "m1"), ("m3-data", "m3")] {
        let mut object: Secret = fleet.store.get(&key("user-data")).await.unwrap().unwrap();
        object.metadata = ObjectMeta::new(super::fleet::name("default"), super::fleet::name(secret));
        object.metadata.annotations.insert(USER_DATA_OF.to_owned(), made_for.to_owned());
        fleet.store.create(object).await.unwrap();
    }
    // m3's is used by another machine too; m2's was made for somebody else; m4 uses what an operator stored.
    let uses =
        [("m1", "m1-data"), ("m2", "m2-data"), ("m3", "m3-data"), ("m4", "user-data"), ("m5", "m3-data")];
    for (machine, secret) in uses {
        fleet.add_machine(machine, Some(secret)).await;
        fleet.until(machine, 5, |m: &Beskar7Machine| !m.metadata.finalizers.is_empty()).await;
    }
    for machine in ["m1", "m2", "m3", "m4"] {
        fleet.store.delete::<Beskar7Machine>(&key(machine)).await.unwrap();
    }
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(fleet.store.get::<Beskar7Machine>(&key("m4")).await.unwrap().is_none());
    let left: Vec<Secret> = fleet.store.list(None).await.unwrap();
    let left: Vec<&str> = left.iter().map(|s| s.metadata.name.as_str()).collect();
    assert_eq!(left, ["login", "m2-data", "m3-data", "user-data"]);
}

#[tokio::test(start_paused = true)]
async fn a_selector_finds_its_host_among_many_and_waits_when_there_is_none() {
    let fleet = Fleet::start().await;
    for number in 0..20 {
        fleet.add_host(&format!("h{number}")).await;
        let mut host = fleet.until_host(&format!("h{number}"), 5, HostState::Available).await;
        host.metadata.labels.insert("rack".to_owned(), format!("r{number}"));
        fleet.store.update(&host).await.unwrap();
    }
    for (machine, rack) in [("m1", "r17"), ("m2", "r99")] {
        let selector = serde_json::json!({ "matchLabels": { "rack": rack } });
        let selector = serde_json::from_value(selector).unwrap();
        fleet.add_machine_that(machine, Some("user-data"), |spec| spec.host_selector = Some(selector)).await;
    }
    let host = fleet.until_host("h17", 5, HostState::Inspecting).await;
    assert_eq!(host.spec.consumer_ref.unwrap().name, "m1");
    let associated = |m: &Beskar7Machine| {
        condition::get(&m.status.conditions, reasons::PHYSICAL_HOST_ASSOCIATED).map(|c| c.reason.clone())
    };
    let waits = |m: &Beskar7Machine| associated(m).as_deref() == Some("NoMatchingPhysicalHost");
    fleet.until("m2", 5, waits).await;
}
