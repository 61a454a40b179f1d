//! Group G: every run ends in time, and says why.

use std::time::Duration;

use farrier_shared::contract::callback::{Event, EventName};
use farrier_shared::contract::time::Time;
use farrier_shared::lifecycle::{BmcObservation, Progress, SignalKey};
use farrier_shared::resource::HostState::{Deploying, Error, Inspecting};
use farrier_shared::resource::condition::Truth;
use farrier_shared::resource::host::InspectionPhase;
use farrier_shared::resource::machine::MachinePhase;

use crate::bench::{Bench, Store};

fn moved(bench: &mut Bench, bytes: u64) {
    let run = bench.credentials.as_ref().unwrap().run.clone();
    let event = Event {
        event: EventName::Installing,
        message: String::new(),
        run: Some(run.clone()),
        step: Some("write".to_owned()),
        bytes: Some(bytes),
        total: None,
        bytes_per_second: None,
    };
    bench.progress = Some(Progress::observe(bench.progress.as_ref(), &run, &event, bench.now));
}

#[test]
fn s136_an_inspection_without_a_report_times_out() {
    let mut bench = Bench::at(Inspecting);
    bench.wait(599);
    bench.machine_pass();
    assert_eq!(bench.machine.status.phase, Some(MachinePhase::Inspecting));
    bench.wait(1);
    bench.machine_pass();
    assert_eq!(bench.machine.status.phase, Some(MachinePhase::Failed));
    let (_, reason, message) = bench.machine_condition("InfrastructureReady");
    assert_eq!(
        (reason.as_str(), message.as_str()),
        ("InspectionTimedOut", "Inspection did not complete within 10m0s")
    );
    bench.pass();
    assert_eq!(bench.state(), Error);
    assert_eq!(bench.host.status.error_message, "Inspection timed out");
    assert_eq!(bench.host.status.inspection_phase, Some(InspectionPhase::Timeout));
    bench.pass();
    assert_eq!(bench.state(), Error, "kept until release");
}

#[test]
fn s069_s136_a_machine_that_cannot_sign_fails_all_the_same() {
    let mut bench = Bench::at(Inspecting);
    bench.wait(600);
    bench.store = Store::Silent;
    bench.machine_pass();
    assert_eq!(bench.machine.status.phase, Some(MachinePhase::Failed));
    assert!(bench.signals.is_empty());
    bench.pass();
    assert_eq!(bench.state(), Inspecting);
    bench.wait(60);
    bench.pass();
    assert_eq!(bench.state(), Error, "the host gives up by itself");
}

#[test]
fn s049_a_lost_machine_write_is_made_good_from_the_host() {
    let mut bench = Bench::at(Inspecting);
    bench.wait(600);
    bench.sign(SignalKey::InspectionRequest, "timeout");
    bench.pass();
    bench.machine_pass();
    assert_eq!(bench.machine_condition("InfrastructureReady").1, "InspectionTimedOut");
}

#[test]
fn a_report_in_time_is_in_time() {
    let mut bench = Bench::at(Inspecting);
    bench.wait(599);
    bench.report("{}");
    bench.pass();
    bench.wait(10);
    bench.machine_pass();
    assert_eq!(bench.machine.status.phase, Some(MachinePhase::Inspecting));
    bench.pass();
    assert_eq!(bench.state(), Deploying);
}

#[test]
fn s137_a_deployment_without_progress_has_its_fixed_time() {
    let mut bench = Bench::at(Deploying);
    bench.wait(1199);
    let decision = bench.pass();
    assert_eq!(bench.state(), Deploying);
    assert_eq!(decision.requeue, Duration::from_secs(1), "wakes for the deadline itself");
    bench.wait(1);
    bench.pass();
    assert_eq!(bench.state(), Error);
    assert_eq!(bench.host.status.error_message, "OS deployment did not complete within 20m0s");
    bench.machine_pass();
    let (truth, reason, message) = bench.machine_condition("InfrastructureReady");
    assert_eq!((truth, reason.as_str()), (Truth::False, "DeploymentTimedOut"));
    assert_eq!(message, "OS deployment did not complete within 20m0s");
}

#[test]
fn a_success_already_on_record_beats_the_deadline() {
    let mut bench = Bench::at(Deploying);
    bench.sign(SignalKey::Provisioned, "provisioned");
    bench.wait(100_000);
    bench.pass();
    assert_eq!(bench.state(), farrier_shared::resource::HostState::Ready);
}

#[test]
fn a_deployment_that_moves_goes_on_until_the_cap() {
    let mut bench = Bench::at(Deploying);
    for minute in 0..119 {
        moved(&mut bench, minute + 1);
        bench.pass();
        assert_eq!(bench.state(), Deploying, "minute {minute}");
        bench.wait(60);
    }
    moved(&mut bench, 1000);
    bench.wait(60);
    bench.pass();
    assert_eq!(bench.state(), Error);
    assert_eq!(bench.host.status.error_message, "OS deployment did not complete within 2h0m0s");
}

#[test]
fn a_deployment_that_stalls_fails_early_and_names_its_step() {
    let mut bench = Bench::at(Deploying);
    bench.wait(60);
    moved(&mut bench, 1 << 20);
    for _ in 0..4 {
        bench.wait(60);
        moved(&mut bench, 1 << 20);
        bench.pass();
        assert_eq!(bench.state(), Deploying, "a heartbeat is not progress, but 5 minutes are not over");
    }
    bench.wait(60);
    bench.pass();
    assert_eq!(bench.state(), Error);
    assert_eq!(
        bench.host.status.error_message,
        "OS deployment stalled in step \"write\": no progress for 5m0s"
    );
    bench.machine_pass();
    assert_eq!(bench.machine_condition("InfrastructureReady").1, "DeploymentTimedOut");
}

#[test]
fn progress_of_another_run_moves_no_deadline() {
    let mut bench = Bench::at(Deploying);
    bench.wait(1200);
    bench.progress = Some(Progress {
        run: "other".to_owned(),
        step: "write".to_owned(),
        bytes: 1,
        advanced_at: bench.now,
    });
    bench.pass();
    assert_eq!(bench.state(), Error);
}

#[test]
fn progress_never_moves_a_state() {
    let mut bench = Bench::at(Inspecting);
    let before = bench.host.status.clone();
    moved(&mut bench, u64::MAX);
    bench.observe(&BmcObservation::NotAsked);
    assert_eq!(bench.host.status, before);
}

#[test]
fn a_report_nobody_decides_on_ends_the_run() {
    let mut bench = Bench::at(Inspecting);
    bench.report("{}");
    bench.pass();
    bench.wait(599);
    bench.pass();
    assert_eq!(bench.state(), Inspecting);
    bench.wait(1);
    bench.pass();
    assert_eq!(bench.state(), Error);
    bench.machine_pass();
    assert_eq!(bench.machine_condition("InfrastructureReady").1, "InspectionFailed");
}

#[test]
fn a_paused_machines_host_waits_with_it() {
    let mut bench = Bench::at(Deploying);
    bench.machine.metadata.annotations.insert("cluster.x-k8s.io/paused".to_owned(), String::new());
    bench.wait(100_000);
    bench.pass();
    assert_eq!(bench.state(), Deploying);
}

#[test]
fn reports_held_up_by_an_absent_controller_get_time_to_arrive() {
    let mut bench = Bench::at(Deploying);
    bench.wait(3600);
    let host = bench.host.clone();
    let clock = |since: Time, now: Time| farrier_shared::lifecycle::Clock {
        now,
        listening_since: since,
        progress: None,
        timings: &bench.timings,
    };
    let began = host.status.deploying_timestamp.unwrap();
    let back = bench.now;
    assert!(
        !clock(back, back + Duration::from_secs(299))
            .deployment(&host, began)
            .passed(back + Duration::from_secs(299))
    );
    assert!(
        clock(back, back + Duration::from_secs(300))
            .deployment(&host, began)
            .passed(back + Duration::from_secs(300))
    );
}

#[test]
fn a_run_without_its_timestamp_still_ends() {
    for state in [Inspecting, Deploying] {
        let mut bench = Bench::at(state);
        bench.host.status.inspection_timestamp = None;
        bench.host.status.deploying_timestamp = None;
        bench.pass();
        bench.wait(3600);
        bench.pass();
        assert_eq!(bench.state(), Error, "{state:?}");
    }
}
