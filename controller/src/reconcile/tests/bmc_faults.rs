//! BMCs that are away, refuse, or do not do as they were told.

use std::time::Duration;

use farrier_shared::lifecycle::SignalKey;
use farrier_shared::lifecycle::reasons;
use farrier_shared::resource::condition;
use farrier_shared::resource::machine::MachinePhase;
use farrier_shared::resource::{Beskar7Machine, HostState, PhysicalHost, Secret};
use tokio::time::Instant;

use super::fleet::{Fleet, key};
use crate::bmc::access::ADDRESSES;
use crate::store::StoreError;

fn connection_reason(host: &PhysicalHost) -> String {
    condition::get(&host.status.conditions, reasons::REDFISH_CONNECTION_READY).unwrap().reason.clone()
}

#[tokio::test(start_paused = true)]
async fn s135_a_bmc_that_hangs_delays_no_other_host_and_no_callback_of_its_own() {
    let fleet = Fleet::start().await;
    for number in 0..16 {
        let name = format!("dead{number}");
        fleet.bmc(&name, |b| b.hangs = true);
        fleet.add_host(&name).await;
    }
    fleet.add_host("alive").await;
    let begun = Instant::now();
    fleet.until_host("alive", 3, HostState::Available).await;
    assert!(begun.elapsed() < Duration::from_secs(3));

    fleet.store.delete::<PhysicalHost>(&key("alive")).await.unwrap();
    fleet.deploying("h1", "m1").await;
    fleet.bmc("h1", |b| b.hangs = true);
    tokio::time::sleep(Duration::from_secs(310)).await;
    fleet.agent_says("h1", SignalKey::Provisioned, "provisioned", None).await;
    fleet.until_host("h1", 2, HostState::Ready).await;
}

#[tokio::test(start_paused = true)]
async fn a_bmc_that_is_away_makes_free_hosts_wait_and_is_asked_until_it_is_back() {
    let fleet = Fleet::start().await;
    fleet.bmc("h1", |b| b.dead = true);
    fleet.add_host("h1").await;
    let host = fleet.until_host("h1", 5, HostState::Error).await;
    assert_eq!(connection_reason(&host), reasons::BMC_UNREACHABLE);
    let version = host.metadata.resource_version;
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert_eq!(fleet.host("h1").await.metadata.resource_version, version, "the same fault is written once");
    fleet.bmc("h1", |b| b.dead = false);
    fleet.until_host("h1", 20, HostState::Available).await;
}

#[tokio::test(start_paused = true)]
async fn a_bmc_that_goes_away_leaves_a_run_alone() {
    let fleet = Fleet::start().await;
    fleet.deploying("h1", "m1").await;
    fleet.bmc("h1", |b| b.dead = true);
    tokio::time::sleep(Duration::from_secs(400)).await;
    let host = fleet.host("h1").await;
    assert_eq!(host.status.state, HostState::Deploying);
    assert_eq!(connection_reason(&host), reasons::BMC_UNREACHABLE);
    fleet.agent_says("h1", SignalKey::Provisioned, "provisioned", None).await;
    fleet.until_phase("m1", 30, MachinePhase::Provisioned).await;
}

#[tokio::test(start_paused = true)]
async fn s141_s203_a_boot_the_bmc_refuses_is_tried_again_and_the_host_is_not_inspecting_before() {
    let fleet = Fleet::start().await;
    fleet.bmc("h1", |b| b.busy = 2);
    fleet.add_host("h1").await;
    fleet.add_machine("m1", Some("user-data")).await;
    fleet.until("h1", 30, |h: &PhysicalHost| h.status.bootstrap.is_some()).await;
    assert_ne!(fleet.host("h1").await.status.state, HostState::Inspecting);
    // Whatever a reset that failed may have booted after all finds its credentials.
    assert!(fleet.store.credentials(&key("h1")).await.unwrap().is_some());
    assert!(fleet.store.signals(&key("h1")).await.unwrap().is_empty());
    let told = |m: &Beskar7Machine| {
        condition::get(&m.status.conditions, reasons::INFRASTRUCTURE_READY)
            .is_some_and(|c| c.message.starts_with("Booting the host failed, will retry: "))
    };
    let machine = fleet.until("m1", 5, told).await;
    assert_ne!(machine.status.phase, Some(MachinePhase::Inspecting));
    fleet.until_host("h1", 120, HostState::Inspecting).await;
    assert_eq!(fleet.bmc("h1", |b| b.log.iter().filter(|l| *l == "On").count()), 1);
    let history = fleet.store.history(&key("h1")).await.unwrap();
    assert_eq!(history.iter().filter(|e| e.event == "BootFailed").count(), 1, "told once: {history:#?}");
}

/// What the boot listener writes when firmware fetches the script.
async fn script_is_fetched(fleet: &Fleet, host: &str) {
    let consumed = fleet.credentials(host).await.nonce.sha256_hex();
    loop {
        let mut fresh = fleet.host(host).await;
        let record = fresh.status.bootstrap.as_mut().unwrap();
        (record.boot_nonce_consumed_hash, record.boot_nonce_consumed_at) =
            (consumed.clone(), Some(fleet.clock.now()));
        match fleet.store.update(&fresh).await {
            Ok(_) => return,
            Err(StoreError::Conflict { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_runs_after_a_reset_whose_answer_was_lost_is_left_running() {
    let fleet = Fleet::start().await;
    fleet.bmc("h1", |b| b.mute = 1);
    fleet.add_host("h1").await;
    fleet.add_machine("m1", Some("user-data")).await;
    fleet.until("h1", 30, |h: &PhysicalHost| h.status.bootstrap.is_some()).await;
    while fleet.bmc("h1", |b| !b.on) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let run = fleet.credentials("h1").await.run;
    script_is_fetched(&fleet, "h1").await;
    let host = fleet.until_host("h1", 120, HostState::Inspecting).await;
    assert_eq!(host.status.run, Some(run));
    assert_eq!(fleet.bmc("h1", |b| b.log.join(" ")), "pxe On");
    fleet.agent_reports("h1").await;
    fleet.until_host("h1", 10, HostState::Deploying).await;
}

#[tokio::test(start_paused = true)]
async fn a_reset_whose_answer_was_lost_and_that_shows_no_effect_is_done_again() {
    let fleet = Fleet::start().await;
    fleet.bmc("h1", |b| (b.mute, b.on) = (1, true));
    fleet.add_host("h1").await;
    fleet.add_machine("m1", Some("user-data")).await;
    fleet.until_host("h1", 120, HostState::Inspecting).await;
    assert_eq!(fleet.bmc("h1", |b| b.log.join(" ")), "pxe ForceRestart pxe ForceRestart");
}

#[tokio::test(start_paused = true)]
async fn boots_that_keep_failing_in_changing_ways_are_backed_off_from() {
    let fleet = Fleet::start().await;
    fleet.bmc("h1", |b| b.busy = u32::MAX);
    fleet.add_host("h1").await;
    fleet.add_machine("m1", Some("user-data")).await;
    tokio::time::sleep(Duration::from_secs(3600)).await;
    let tries = fleet.bmc("h1", |b| u32::MAX - b.busy);
    assert!((5..=12).contains(&tries), "{tries} tries in an hour");
    // Once it is no longer about this boot, the next one does not wait.
    fleet.bmc("h1", |b| (b.busy, b.dead) = (0, true));
    fleet.until_host("h1", 310, HostState::Error).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    fleet.bmc("h1", |b| b.dead = false);
    fleet.until_host("h1", 60, HostState::Inspecting).await;
}

#[tokio::test(start_paused = true)]
async fn credentials_go_nowhere_without_consent_and_consent_heals_at_once() {
    let fleet = Fleet::start().await;
    let mut login: Secret = fleet.store.get(&key("login")).await.unwrap().unwrap();
    let consent = login.metadata.annotations.remove(ADDRESSES).unwrap();
    let mut login = fleet.store.update(&login).await.unwrap();
    fleet.add_host("h1").await;
    let host = fleet.until_host("h1", 5, HostState::Error).await;
    assert_eq!(connection_reason(&host), reasons::CREDENTIALS_NOT_AUTHORIZED);
    login.metadata.annotations.insert(ADDRESSES.to_owned(), consent);
    fleet.store.update(&login).await.unwrap();
    fleet.until_host("h1", 2, HostState::Available).await;
}

#[tokio::test(start_paused = true)]
async fn a_corrected_address_is_tried_at_once() {
    let fleet = Fleet::start().await;
    fleet.add_host("h1").await;
    let mut host = fleet.until_host("h1", 5, HostState::Available).await;
    let right = host.spec.redfish_connection.address.clone();
    // Not consented to: asked again only after minutes.
    host.spec.redfish_connection.address = "https://elsewhere.example".parse().unwrap();
    fleet.store.update(&host).await.unwrap();
    let mut host = fleet.until_host("h1", 2, HostState::Error).await;
    assert_eq!(connection_reason(&host), reasons::CREDENTIALS_NOT_AUTHORIZED);
    host.spec.redfish_connection.address = right;
    fleet.store.update(&host).await.unwrap();
    fleet.until_host("h1", 2, HostState::Available).await;
}

#[tokio::test(start_paused = true)]
async fn a_deleted_host_goes_even_when_its_bmc_is_dead() {
    let fleet = Fleet::start().await;
    fleet.deploying("h1", "m1").await;
    let logs = fleet.logs.path().join("default");
    std::fs::create_dir(&logs).unwrap();
    for file in ["h1.log", "h1.log.3", "h11.log"] {
        std::fs::write(logs.join(file), "a line").unwrap();
    }
    fleet.bmc("h1", |b| b.hangs = true);
    fleet.store.delete::<PhysicalHost>(&key("h1")).await.unwrap();
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(fleet.store.get::<PhysicalHost>(&key("h1")).await.unwrap().is_none());
    assert!(fleet.store.credentials(&key("h1")).await.unwrap().is_none());
    let left: Vec<_> = std::fs::read_dir(&logs).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["h11.log"]);
}

#[tokio::test(start_paused = true)]
async fn s147_a_machine_goes_and_lets_its_host_go_even_when_the_bmc_is_dead_or_its_login_is_gone() {
    for login_gone in [false, true] {
        let fleet = Fleet::start().await;
        fleet.deploying("h1", "m1").await;
        if login_gone {
            fleet.store.delete::<Secret>(&key("login")).await.unwrap();
        } else {
            fleet.bmc("h1", |b| b.dead = true);
        }
        fleet.store.delete::<Beskar7Machine>(&key("m1")).await.unwrap();
        fleet.until("h1", 60, |h: &PhysicalHost| h.spec.consumer_ref.is_none()).await;
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert!(fleet.store.get::<Beskar7Machine>(&key("m1")).await.unwrap().is_none(), "{login_gone}");
        let history = fleet.store.history(&key("h1")).await.unwrap();
        let told: Vec<_> = history.iter().filter(|e| e.event == "PowerActionFailed").collect();
        let [told] = told.as_slice() else { panic!("{login_gone}: {history:#?}") };
        assert!(
            told.reason.starts_with("cutting the power failed, the server may be running still: "),
            "{told:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn s139_a_host_that_did_not_come_up_is_switched_on_again_and_boots_from_the_network() {
    let fleet = Fleet::start().await;
    fleet.add_host("h1").await;
    fleet.add_machine("m1", Some("user-data")).await;
    fleet.until_host("h1", 60, HostState::Inspecting).await;
    fleet.bmc("h1", |b| b.on = false);
    tokio::time::sleep(Duration::from_secs(570)).await;
    assert_eq!(fleet.bmc("h1", |b| b.log.clone()), ["pxe", "On", "pxe", "On"]);
}
