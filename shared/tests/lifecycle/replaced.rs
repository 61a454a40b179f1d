//! A host that accepted one run while its machine was booted for the next.

use farrier_shared::lifecycle::reasons::HOST_INSPECTED;
use farrier_shared::lifecycle::{BmcObservation, PowerState, SignalKey};
use farrier_shared::resource::HostState::{Deploying, Error, InUse, Inspecting, Ready};
use farrier_shared::resource::condition::Truth;
use farrier_shared::resource::host::InspectionPhase;
use farrier_shared::resource::machine::MachinePhase;

use crate::bench::{Bench, Store};

const REPORT: &str = r#"{"cpus":[{"cores":16}]}"#;

fn run(bench: &Bench) -> Option<String> {
    bench.credentials.as_ref().map(|c| c.run.clone())
}

/// Booted for a first run, whose `inspect` waits; then the server went dark and the nonce ended, so that the
/// machine's next boot is a new run.
fn booted_and_gone_dark() -> Bench {
    let mut bench = Bench::at(InUse);
    bench.machine_pass();
    bench.power = PowerState::Off;
    bench.wait(601);
    bench
}

/// The host accepts the first run on what it read before the machine was booted for the second.
fn accepted_too_late() -> Bench {
    let mut bench = booted_and_gone_dark();
    let decided = bench.decide(&BmcObservation::NotAsked);
    bench.machine_pass();
    bench.carry_out(&decided);
    assert_eq!(bench.state(), Inspecting);
    assert_ne!(bench.host.status.run, run(&bench));
    bench
}

/// Host and machine take turns until the agent, which has said everything already, is through.
fn settle(bench: &mut Bench) {
    for _ in 0..6 {
        bench.pass();
        bench.machine_pass();
    }
}

#[test]
fn an_acknowledged_report_of_the_new_run_is_decided_on() {
    let mut bench = accepted_too_late();
    bench.report(REPORT);
    settle(&mut bench);
    assert_eq!(bench.state(), Deploying);
    assert_eq!(bench.host.status.run, run(&bench));
    assert_eq!(bench.actions.len(), 2, "no boot beyond the two: {:?}", bench.actions);
}

#[test]
fn its_report_and_success_are_kept_even_when_nothing_was_requested_of_the_host() {
    let mut bench = accepted_too_late();
    // The boot found the host Inspecting already and said nothing.
    bench.signals.clear();
    bench.report(REPORT);
    bench.sign(SignalKey::Provisioned, "provisioned");
    settle(&mut bench);
    assert_eq!((bench.state(), bench.machine.status.ready), (Ready, true));
    assert_eq!(bench.actions.len(), 2, "no boot beyond the two: {:?}", bench.actions);
}

#[test]
fn a_controller_killed_between_credentials_and_boot_boots_the_host_for_them() {
    let mut bench = accepted_too_late();
    bench.signals.clear();
    bench.booted = None;
    settle(&mut bench);
    assert_eq!((bench.state(), bench.actions.len()), (Inspecting, 3));
    assert_eq!(bench.host.status.run, run(&bench));
}

#[test]
fn nothing_of_the_accepted_run_counts_for_the_new_one() {
    let mut bench = Bench::at(Inspecting);
    bench.report(REPORT);
    bench.pass();
    bench.wait(24 * 3600);
    bench.mint();
    let decision = bench.decide_machine();
    assert_ne!(decision.status.phase, Some(MachinePhase::Failed), "the deadline is another run's");
    assert!(
        decision.effects.iter().all(|e| !format!("{e:?}").contains("inspect-complete")),
        "so is the report"
    );
    bench.sign(SignalKey::InspectionRequest, "inspect-complete");
    bench.observe(&BmcObservation::NotAsked);
    let status = &bench.host.status;
    assert_eq!((status.state, &status.run, status.inspection_phase), (InUse, &None, None));
    assert_eq!((status.inspection_timestamp, status.deploying_timestamp), (None, None));
    assert_eq!(bench.host_condition(HOST_INSPECTED).0, Truth::False);
    bench.sign(SignalKey::InspectionRequest, "inspect");
    bench.pass();
    assert_eq!(bench.host.status.inspection_phase, Some(InspectionPhase::Booting));
}

#[test]
fn a_run_is_left_only_for_credentials_of_the_same_claim_that_can_be_read() {
    let changes: [fn(&mut Bench); 4] = [
        |bench| bench.store = Store::Silent,
        |bench| bench.credentials = None,
        |bench| bench.credentials.as_mut().unwrap().host_uid = "another".to_owned(),
        |bench| bench.credentials.as_mut().unwrap().consumer = "another".to_owned(),
    ];
    for change in changes {
        let mut bench = accepted_too_late();
        bench.signals.clear();
        change(&mut bench);
        bench.observe(&BmcObservation::NotAsked);
        assert_eq!(bench.state(), Inspecting);
    }
}

#[test]
fn a_run_past_its_inspection_is_not_replaced() {
    for mut bench in [Bench::at(Deploying), Bench::at(Ready), Bench::run_failed()] {
        let before = bench.host.status.state;
        let accepted = bench.host.status.run.clone();
        bench.mint();
        bench.pass();
        assert_eq!((bench.state(), &bench.host.status.run), (before, &accepted));
        assert!(matches!(before, Deploying | Ready | Error));
    }
}
