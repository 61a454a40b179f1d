//! The client against a simulated BMC: what it asks, and what it makes of every kind of fault.

use std::sync::Arc;
use std::time::Duration;

use farrier_shared::lifecycle::PowerState;
use farrier_shared::lifecycle::fault::{BmcFacts, BmcObservation, Failure, Transient};
use serde_json::json;
use tokio::io::AsyncWriteExt as _;

use super::RedfishConnector;
use super::simulator::{Fault, Nic, Simulator, access};
use super::transport::Pace;
use crate::bmc::{Bmc, BmcError, BootMode, Connector as _, ResetKind};

/// Whatever is to come does come in time, however busy the machine that runs the tests.
const PATIENT: Pace = Pace {
    call: Duration::from_secs(20),
    connect: Duration::from_secs(20),
    addresses: Duration::from_secs(20),
    poll: Duration::from_millis(5),
    settle: Duration::from_secs(20),
};
/// For power that never changes.
const HASTY: Pace = Pace { settle: Duration::from_millis(400), ..PATIENT };

fn connector() -> RedfishConnector {
    at(PATIENT)
}

fn at(pace: Pace) -> RedfishConnector {
    rustls::crypto::ring::default_provider().install_default().ok();
    RedfishConnector::with_pace(pace)
}

async fn connect(simulator: &Simulator) -> Arc<dyn Bmc> {
    connect_at(PATIENT, simulator).await
}

async fn connect_at(pace: Pace, simulator: &Simulator) -> Arc<dyn Bmc> {
    at(pace).connect(&simulator.access()).await.unwrap()
}

async fn fails_to_connect(base: &str) -> BmcError {
    fails_to_connect_at(PATIENT, base).await
}

async fn fails_to_connect_at(pace: Pace, base: &str) -> BmcError {
    match at(pace).connect(&access(base)).await {
        Ok(_) => panic!("connected"),
        Err(error) => {
            let shown = format!("{error} {error:?}");
            assert!(!shown.contains("hunter2") && !shown.contains("admin"), "{shown}");
            error
        }
    }
}

#[tokio::test]
async fn facts_come_from_system_and_interfaces() {
    let simulator = Simulator::start("On").await;
    let facts = connect(&simulator).await.system_info().await.unwrap();
    assert_eq!(facts.power, Some(PowerState::On));
    assert_eq!(facts.details.unwrap().serial_number, "S-1");
    let shown: Vec<_> =
        facts.addresses.unwrap().iter().map(|a| format!("{} {}", a.kind, a.address)).collect();
    assert_eq!(shown, ["InternalIP 10.0.0.5", "ExternalIP 203.0.113.9", "InternalIP fd00::5"]);
}

/// Looks at the BMC once more, as every few minutes; gives what was seen and the requests that it took.
async fn look(connector: &RedfishConnector, simulator: &Simulator) -> (Result<BmcFacts, BmcError>, usize) {
    let before = simulator.with(|m| m.requests);
    let seen = match connector.connect(&simulator.access()).await {
        Ok(bmc) => bmc.system_info().await,
        Err(error) => Err(error),
    };
    (seen, simulator.with(|m| m.requests) - before)
}

#[tokio::test]
async fn a_further_look_takes_one_request_and_sees_the_power_as_it_is() {
    let (connector, simulator) = (connector(), Simulator::start("On").await);
    let (first, requests) = look(&connector, &simulator).await;
    let first = first.unwrap();
    assert!(requests > 3, "{requests}");
    let (second, requests) = look(&connector, &simulator).await;
    assert_eq!((second.unwrap(), requests), (first.clone(), 1));

    // Other power may mean other addresses: they are read again.
    simulator.with(|m| m.power = "Off");
    let (off, requests) = look(&connector, &simulator).await;
    assert_eq!(off.unwrap(), BmcFacts { power: Some(PowerState::Off), ..first });
    assert!(requests > 1, "{requests}");
    assert_eq!(look(&connector, &simulator).await.1, 1);
}

/// The private addresses among those seen, one for each interface that was read.
fn interfaces(facts: &BmcFacts) -> Vec<&str> {
    let all = facts.addresses.as_deref().unwrap_or_default().iter().map(|a| a.address.as_str());
    all.filter(|address| address.starts_with("10.")).collect()
}

#[tokio::test]
async fn s126_interfaces_that_fail_cost_their_own_addresses_alone() {
    let (connector, simulator) = (connector(), Simulator::start("On").await);
    simulator.with(|m| m.interfaces = vec![Nic::Status(500), Nic::Well, Nic::Status(404), Nic::Well]);
    let facts = look(&connector, &simulator).await.0.unwrap();
    assert_eq!(interfaces(&facts), ["10.0.1.5", "10.0.3.5"]);
    assert_eq!(facts.power, Some(PowerState::On));
    assert_eq!(look(&connector, &simulator).await.1, 1, "they are not asked with every look");
}

#[tokio::test]
async fn s126_a_bmc_that_is_slow_with_its_interfaces_is_well_and_what_it_told_in_time_is_kept() {
    let pace = Pace { addresses: Duration::from_secs(2), ..PATIENT };
    let (connector, simulator) = (at(pace), Simulator::start("On").await);
    let slow = Duration::from_secs(3);
    simulator.with(|m| m.interfaces = [vec![Nic::Well], vec![Nic::Slow(slow); 30]].concat());
    let begun = tokio::time::Instant::now();
    let (facts, requests) = look(&connector, &simulator).await;
    assert!(begun.elapsed() < slow * 10, "{:?}", begun.elapsed());
    let facts = facts.unwrap();
    assert_eq!((facts.power, interfaces(&facts)), (Some(PowerState::On), vec!["10.0.0.5"]));
    assert!(requests < 10, "{requests}");
    assert_eq!(look(&connector, &simulator).await, (Ok(facts), 1));
}

#[tokio::test]
async fn s126_interfaces_nobody_may_see_are_asked_for_once() {
    let (connector, simulator) = (connector(), Simulator::start("On").await);
    simulator.with(|m| m.interfaces = vec![Nic::Status(403); 5]);
    let (facts, requests) = look(&connector, &simulator).await;
    assert_eq!(facts.unwrap().addresses, None);
    // Root, systems, system, list and the first interface.
    assert_eq!(requests, 5);
}

#[tokio::test]
async fn a_known_bmc_fails_as_one_that_was_never_asked_and_refused_credentials_are_not_tried_again() {
    for (fault, requests, failure) in [
        (Fault::Status(401), 1, Some(Failure::Login)),
        (Fault::Status(503), 1, None),
        (Fault::Status(404), 2, Some(Failure::Connection)),
        (Fault::Garbage, 2, Some(Failure::Connection)),
    ] {
        let (connector, simulator) = (connector(), Simulator::start("On").await);
        look(&connector, &simulator).await.0.unwrap();
        simulator.with(|m| m.fault = Some(fault.clone()));
        let (failed, asked) = look(&connector, &simulator).await;
        assert_eq!((failed.unwrap_err().failure(), asked), (failure, requests), "{fault:?}");
        simulator.with(|m| m.fault = None);
        look(&connector, &simulator).await.0.unwrap();
    }
}

#[tokio::test]
async fn a_system_that_moved_is_found_again_at_once() {
    let (connector, simulator) = (connector(), Simulator::start("On").await);
    look(&connector, &simulator).await.0.unwrap();
    simulator.with(|m| m.system = "/redfish/v1/Systems/437XR1138R2");
    look(&connector, &simulator).await.0.unwrap();
    assert_eq!(look(&connector, &simulator).await.1, 1);
}

#[tokio::test]
async fn boot_settings_are_sent_with_the_entity_tag_and_again_when_it_was_old() {
    let simulator = Simulator::start("Off").await;
    let bmc = connect(&simulator).await;
    bmc.set_boot_pxe_once(BootMode::AsConfigured).await.unwrap();
    simulator.with(|m| m.interference = 1);
    bmc.clear_boot_override().await.unwrap();
    let sent = simulator.with(|m| m.patches.clone());
    assert_eq!(
        sent,
        [
            json!({ "Boot": { "BootSourceOverrideTarget": "Pxe", "BootSourceOverrideEnabled": "Once" } }),
            json!({ "Boot": { "BootSourceOverrideTarget": "None", "BootSourceOverrideEnabled": "Disabled" } }),
        ]
    );
    simulator.with(|m| m.interference = 3);
    let error = bmc.clear_boot_override().await.unwrap_err();
    assert_eq!(error.status(), Some(412));
}

#[tokio::test]
async fn vendors_get_what_they_need() {
    let simulator = Simulator::start("Off").await;
    simulator.with(|m| m.manufacturer = "Lenovo");
    connect(&simulator).await.clear_boot_override().await.unwrap();
    simulator.with(|m| m.manufacturer = "Supermicro");
    connect(&simulator).await.set_boot_pxe_once(BootMode::AsConfigured).await.unwrap();
    let last = simulator.with(|m| m.patches.pop().unwrap());
    assert_eq!(last["Boot"]["BootSourceOverrideMode"], "UEFI");
}

#[tokio::test]
async fn a_board_sold_under_another_name_gets_what_its_bmc_needs_whenever_it_is_asked() {
    let (connector, simulator) = (connector(), Simulator::start("Off").await);
    simulator.with(|m| (m.manufacturer, m.vendor) = ("Thomas-Krenn.AG", json!("Supermicro")));
    for (mode, expected) in [
        (BootMode::AsConfigured, "UEFI"),
        (BootMode::Legacy, "Legacy"),
        // Its root is not asked for any more.
        (BootMode::AsConfigured, "UEFI"),
    ] {
        let bmc = connector.connect(&simulator.access()).await.unwrap();
        bmc.set_boot_pxe_once(mode).await.unwrap();
        let last = simulator.with(|m| m.patches.pop().unwrap());
        assert_eq!(last["Boot"]["BootSourceOverrideMode"], expected);
    }
}

#[tokio::test]
async fn power_actions_are_confirmed_and_being_there_is_success() {
    for (kind, before, sent, after) in [
        (ResetKind::On, "Off", "On", "On"),
        (ResetKind::On, "On", "", "On"),
        (ResetKind::ForceOff, "On", "ForceOff", "Off"),
        (ResetKind::ForceOff, "Off", "", "Off"),
        (ResetKind::GracefulShutdown, "On", "GracefulShutdown", "Off"),
        (ResetKind::ForceRestart, "On", "ForceRestart", "On"),
        (ResetKind::ForceRestart, "Off", "On", "On"),
    ] {
        let simulator = Simulator::start(before).await;
        let bmc = connect(&simulator).await;
        bmc.reset(kind).await.unwrap_or_else(|e| panic!("{kind:?} at {before}: {e}"));
        let (resets, power) = simulator.with(|m| (m.resets.join(" "), m.power));
        assert_eq!((resets.as_str(), power), (sent, after), "{kind:?} at {before}");
        assert_eq!(bmc.power_state().await.unwrap().as_str(), after);
    }
}

#[tokio::test]
async fn a_refused_action_whose_end_is_reached_meanwhile_is_success() {
    let simulator = Simulator::start("On").await;
    // The first read shows the old state; the server is off by the time it is told to go off.
    simulator.with(|m| (m.lag, m.power) = (vec!["On"], "Off"));
    connect(&simulator).await.reset(ResetKind::ForceOff).await.unwrap();
    assert_eq!(simulator.with(|m| m.resets.join(" ")), "ForceOff");
}

#[tokio::test]
async fn a_restart_without_such_a_type_is_off_and_on() {
    let simulator = Simulator::start("On").await;
    simulator.with(|m| m.allowed = Some(vec!["On", "ForceOff"]));
    connect(&simulator).await.reset(ResetKind::ForceRestart).await.unwrap();
    assert_eq!(simulator.with(|m| m.resets.join(" ")), "ForceOff On");
}

#[tokio::test]
async fn an_action_that_shows_no_effect_fails_in_bounded_time() {
    let simulator = Simulator::start("Off").await;
    simulator.with(|m| m.stuck = true);
    let error = connect_at(HASTY, &simulator).await.reset(ResetKind::On).await.unwrap_err();
    assert!(error.to_string().contains("not On after"), "{error}");
}

#[tokio::test]
async fn a_reset_whose_answer_is_lost_is_looked_for_in_the_power_and_not_sent_again() {
    for (kind, before, sent) in
        [(ResetKind::On, "Off", "On"), (ResetKind::GracefulShutdown, "On", "GracefulShutdown")]
    {
        let simulator = Simulator::start(before).await;
        simulator.with(|m| m.mute = true);
        connect(&simulator).await.reset(kind).await.unwrap();
        assert_eq!(simulator.with(|m| m.resets.join(" ")), sent);
    }
    // Nothing to be seen: what went wrong is told.
    for (kind, power, stuck) in [(ResetKind::On, "Off", true), (ResetKind::ForceRestart, "On", false)] {
        let simulator = Simulator::start(power).await;
        simulator.with(|m| (m.mute, m.stuck) = (true, stuck));
        let error = connect_at(HASTY, &simulator).await.reset(kind).await.unwrap_err();
        assert!(error.outcome_unknown(), "{error}");
        assert_eq!(simulator.with(|m| m.resets.len()), 1);
    }
}

#[tokio::test]
async fn refusals_name_redfish_ids_and_nothing_the_bmc_wrote() {
    let simulator = Simulator::start("On").await;
    simulator.with(|m| (m.allowed, m.power, m.lag) = (None, "Off", vec!["On"; 8]));
    let error = connect(&simulator).await.reset(ResetKind::ForceRestart).await.unwrap_err().to_string();
    assert!(error.contains("HTTP 400, iLO.2.8.InvalidOperationForSystemState"), "{error}");
    assert!(!error.contains("hunter2"), "{error}");
}

#[tokio::test]
async fn faults_are_told_apart() {
    use Failure::{Connection, Login};
    enum Expected {
        Passes(Transient),
        Stays(Failure),
    }
    use Expected::{Passes, Stays};
    for (fault, expected) in [
        (Fault::Status(503), Passes(Transient::Http(503))),
        (Fault::Status(502), Passes(Transient::Http(502))),
        (Fault::Status(504), Passes(Transient::Http(504))),
        (Fault::Slow(Duration::from_secs(60)), Passes(Transient::TimedOut)),
        (Fault::Status(401), Stays(Login)),
        (Fault::Status(403), Stays(Login)),
        (Fault::Status(500), Stays(Connection)),
        (Fault::Status(404), Stays(Connection)),
        (Fault::Garbage, Stays(Connection)),
        (Fault::Oversize, Stays(Connection)),
        (Fault::Redirect("https://192.0.2.1/".to_owned()), Stays(Connection)),
    ] {
        let simulator = Simulator::start("On").await;
        simulator.with(|m| m.fault = Some(fault.clone()));
        let call = if matches!(fault, Fault::Slow(_)) { Duration::from_millis(500) } else { PATIENT.call };
        let pace = Pace { call, ..PATIENT };
        let error = fails_to_connect_at(pace, &format!("http://{}", simulator.at)).await;
        match (error.observation(), expected) {
            (BmcObservation::Unreachable { class }, Passes(wanted)) => assert_eq!(class, wanted),
            (BmcObservation::Failed { failure, .. }, Stays(wanted)) => {
                assert_eq!(failure, wanted, "{fault:?}");
            }
            (other, _) => panic!("{fault:?} gave {other:?}"),
        }
    }
}

#[tokio::test]
async fn a_question_that_fails_later_is_a_failed_query() {
    let simulator = Simulator::start("On").await;
    let bmc = connect(&simulator).await;
    simulator.with(|m| m.fault = Some(Fault::Status(500)));
    let observed = bmc.system_info().await.unwrap_err().observation();
    assert!(matches!(observed, BmcObservation::Failed { failure: Failure::Query, .. }), "{observed:?}");
    simulator.with(|m| m.fault = Some(Fault::Status(401)));
    let observed = bmc.system_info().await.unwrap_err().observation();
    assert!(matches!(observed, BmcObservation::Failed { failure: Failure::Login, .. }), "{observed:?}");
}

#[tokio::test]
async fn s132_links_and_redirects_to_other_origins_are_never_followed() {
    let elsewhere = Simulator::start("On").await;
    for link in [
        format!("http://{}/redfish/v1/Systems/1", elsewhere.at),
        format!("//{}/redfish/v1/Systems/1", elsewhere.at),
        format!("https://{}/redfish/v1/Systems/1", elsewhere.at),
    ] {
        let simulator = Simulator::start("On").await;
        simulator.with(|m| m.fault = Some(Fault::ForeignSystem(link.clone())));
        let error = connect(&simulator).await.system_info().await.unwrap_err();
        assert!(error.to_string().contains("another origin"), "{error}");
        simulator.with(|m| m.fault = Some(Fault::Redirect(link)));
        fails_to_connect(&format!("http://{}", simulator.at)).await;
    }
    assert_eq!(elsewhere.with(|m| m.requests), 0);
}

#[tokio::test]
async fn connections_that_fail_have_their_class() {
    let free = {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        listener.local_addr().unwrap()
    };
    let refused = fails_to_connect(&format!("http://{free}")).await;
    assert_eq!(refused.observation(), BmcObservation::Unreachable { class: Transient::Refused });

    let unknown = fails_to_connect("http://no-such-bmc.invalid").await;
    assert_eq!(unknown.observation(), BmcObservation::Unreachable { class: Transient::Dns });

    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let resetting = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = [0; 4096];
            tokio::io::AsyncReadExt::read(&mut stream, &mut request).await.ok();
            stream.set_zero_linger().unwrap();
        }
    });
    let reset = fails_to_connect(&format!("http://{resetting}")).await;
    assert_eq!(reset.observation(), BmcObservation::Unreachable { class: Transient::Reset });

    // Closes without an answer, then answers with what is no HTTP.
    for (answer, expected) in [(&b""[..], true), (&b"SSH-2.0-x\r\n\r\n"[..], false)] {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut request = [0; 4096];
                tokio::io::AsyncReadExt::read(&mut stream, &mut request).await.ok();
                stream.write_all(answer).await.ok();
            }
        });
        let observed = fails_to_connect(&format!("http://{at}")).await.observation();
        let closed = BmcObservation::Unreachable { class: Transient::Closed };
        assert_eq!(observed == closed, expected, "{observed:?}");
        assert_eq!(matches!(observed, BmcObservation::Failed { .. }), !expected, "{observed:?}");
    }
}
