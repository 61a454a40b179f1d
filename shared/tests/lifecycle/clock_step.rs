//! Runs go on as they were when the machine's clock is set.

use std::time::Duration;

use farrier_shared::contract::time::Time;
use farrier_shared::lifecycle::{ClockStep, Progress};
use farrier_shared::resource::HostState::{Deploying, Error, InUse, Inspecting};

use crate::bench::Bench;

const FORWARD: i64 = 50 * 365 * 24 * 3600;

/// The clock is set by so much, and all that is recorded is taken along.
fn set(bench: &mut Bench, began: Time, seconds: i64) {
    let step = ClockStep { since: began, before: bench.now, seconds };
    step.apply_to_host(&mut bench.host.status);
    if let Some(new) = bench.credentials.as_ref().and_then(|c| step.apply_to_credentials(c)) {
        bench.credentials = Some(new);
    }
    if let Some(progress) = &mut bench.progress {
        step.apply_to_progress(progress);
    }
    bench.now = Time::from_unix(bench.now.unix() + seconds);
}

#[test]
fn a_run_has_the_time_it_had_left_before_a_step_either_way() {
    for seconds in [FORWARD, -FORWARD / 10, 3600, -3600] {
        for (state, limit) in [(Inspecting, 660), (Deploying, 1200)] {
            let began = Bench::new().now;
            let mut bench = Bench::at(state);
            bench.wait(100);
            set(&mut bench, began, seconds);
            let token = bench.credentials.as_ref().unwrap().token.expose().to_owned();
            bench.wait(limit - 101);
            bench.pass();
            assert_eq!(bench.state(), state, "{seconds}");
            let verified = bench.read().verify_bearer(&bench.host, &token, bench.now);
            assert!(verified.is_ok(), "{seconds}: {verified:?}");
            bench.wait(1);
            bench.pass();
            assert_eq!(bench.state(), Error, "{seconds}");
        }
    }
}

#[test]
fn progress_is_neither_lost_nor_made_by_a_step() {
    for seconds in [FORWARD, -FORWARD / 10] {
        let began = Bench::new().now;
        let mut bench = Bench::at(Deploying);
        let run = bench.credentials.as_ref().unwrap().run.clone();
        bench.progress = Some(Progress { run, step: "write".to_owned(), bytes: 1, advanced_at: bench.now });
        bench.wait(100);
        set(&mut bench, began, seconds);
        bench.wait(199);
        bench.pass();
        assert_eq!(bench.state(), Deploying, "{seconds}");
        bench.wait(1);
        bench.pass();
        assert_eq!(bench.state(), Error, "{seconds}");
    }
}

#[test]
fn what_another_clock_told_stays_and_what_has_ended_stays_ended() {
    let mut bench = Bench::at(Deploying);
    let (began, credentials) = (bench.host.status.deploying_timestamp, bench.credentials.clone().unwrap());
    // This process began when the run was under way already.
    let step = ClockStep { since: bench.now + Duration::from_secs(1), before: bench.now, seconds: FORWARD };
    step.apply_to_host(&mut bench.host.status);
    assert_eq!(bench.host.status.deploying_timestamp, began);
    assert_eq!(step.apply_to_credentials(&credentials), None);

    for seconds in [FORWARD, -FORWARD] {
        let since = credentials.token_issued_at;
        let before = credentials.token_expires_at;
        let moved = ClockStep { since, before, seconds }.apply_to_credentials(&credentials).unwrap();
        assert!(moved.token_expires_at <= Time::from_unix(before.unix() + seconds), "{seconds}");
    }
}

#[test]
fn a_run_dated_by_a_clock_that_ran_ahead_still_ends() {
    for state in [Inspecting, Deploying] {
        let mut bench = Bench::at(state);
        bench.now = Time::from_unix(bench.now.unix() - FORWARD);
        bench.pass();
        bench.wait(3600);
        bench.pass();
        assert_eq!(bench.state(), Error, "{state:?}");
    }
    let mut reported = Bench::at(Inspecting);
    reported.report("{}");
    reported.pass();
    reported.now = Time::from_unix(reported.now.unix() - FORWARD);
    reported.pass();
    reported.wait(3600);
    reported.pass();
    assert_eq!(reported.state(), Error);

    let mut stalled = Bench::at(Deploying);
    let run = stalled.credentials.as_ref().unwrap().run.clone();
    let told = stalled.now + Duration::from_secs(3600);
    stalled.progress = Some(Progress { run, step: "write".to_owned(), bytes: 1, advanced_at: told });
    stalled.wait(7200);
    stalled.pass();
    assert_eq!(stalled.state(), Error);
}

#[test]
fn credentials_of_a_clock_that_ran_ahead_serve_no_other_boot() {
    let mut bench = Bench::at(InUse);
    let run = bench.credentials.as_ref().unwrap().run.clone();
    bench.now = Time::from_unix(bench.now.unix() - FORWARD);
    let kept = |e: farrier_shared::lifecycle::mint::Ensured| {
        matches!(e, farrier_shared::lifecycle::mint::Ensured::Keep(_))
    };
    assert!(!kept(bench.ensure(None).unwrap()));
    assert!(kept(bench.ensure(Some(&run)).unwrap()), "an agent that runs keeps what it has");
}
