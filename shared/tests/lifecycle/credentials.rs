//! Group D: minting, keeping, verifying and cutting credentials.

use std::time::Duration;

use farrier_shared::lifecycle::boot::{BootDecision, decide_boot};
use farrier_shared::lifecycle::credentials::{Refused, bearer, mirror};
use farrier_shared::lifecycle::mint::{EnsureError, Ensured};
use farrier_shared::lifecycle::{MachineEffect, PowerAction, PowerState, Timings};
use farrier_shared::resource::HostState::{Available, Deploying, Error, InUse, Inspecting, Ready};
use farrier_shared::resource::machine::MachinePhase;

use crate::bench::{Bench, Store, down};

fn fetch(bench: &mut Bench) {
    let nonce = bench.credentials.as_ref().unwrap().nonce.expose().to_owned();
    let client = "192.0.2.7".parse().unwrap();
    let BootDecision::Consume { bootstrap, .. } =
        decide_boot(&bench.host, bench.read(), &nonce, client, bench.now, &bench.timings)
    else {
        panic!("not served");
    };
    bench.host.status.bootstrap = Some(*bootstrap);
}

#[test]
fn unused_credentials_are_kept() {
    let mut bench = Bench::at(InUse);
    let before = bench.credentials.clone().unwrap();
    assert_eq!(bench.ensure(None), Ok(Ensured::Keep(before)));
}

#[test]
fn s083_a_running_agent_keeps_what_it_was_booted_with() {
    let mut bench = Bench::at(InUse);
    fetch(&mut bench);
    let before = bench.credentials.clone().unwrap();
    assert_eq!(bench.ensure(Some(&before.run)), Ok(Ensured::Keep(before.clone())));
    // Without an agent, a consumed nonce means another boot, and that another run.
    let Ok(Ensured::Write(new)) = bench.ensure(None) else { panic!("kept") };
    assert!(new.run != before.run && new.token != before.token && new.nonce != before.nonce);
}

#[test]
fn s083_a_token_about_to_end_is_not_kept_for_another_boot() {
    let mut bench = Bench::at(InUse);
    let run = bench.credentials.as_ref().unwrap().run.clone();
    bench.wait(40 * 60 - 1);
    bench.credentials.as_mut().unwrap().nonce_expires_at = bench.now + Duration::from_secs(60);
    assert!(matches!(bench.ensure(Some(&run)), Ok(Ensured::Keep(_))));
    bench.wait(1);
    assert!(matches!(bench.ensure(Some(&run)), Ok(Ensured::Write(_))));
}

#[test]
fn s083_a_report_that_waits_to_be_taken_keeps_a_running_agents_token() {
    let mut bench = Bench::at(InUse);
    let before = bench.credentials.clone().unwrap();
    bench.wait(45 * 60);
    let asked = |bench: &mut Bench, run: Option<&str>| matches!(bench.ensure(run), Ok(Ensured::Keep(_)));
    assert!(!asked(&mut bench, Some(&before.run)), "nothing was reported");
    bench.report("{}");
    assert!(asked(&mut bench, Some(&before.run)));
    assert!(!asked(&mut bench, None), "another boot needs a token that lasts");
    // One of another run, or rewritten since, is no report.
    bench.signals[0].report = Some("{\"a\":1}".to_owned());
    assert!(!asked(&mut bench, Some(&before.run)));
    bench.report("{}");
    bench.wait(15 * 60);
    assert!(!asked(&mut bench, Some(&before.run)), "an ended token is good for nothing");
}

#[test]
fn s086_a_longer_inspection_stretches_nonce_and_token() {
    let minutes = |n: u64| Duration::from_secs(n * 60);
    // Inspection timeout, and what nonce and token then live; the token outlasts one boot by as much each time.
    for (inspection, nonce, token) in [(10, 10, 60), (1, 10, 60), (15, 15, 70), (50, 50, 140)] {
        let timings = Timings { inspection_timeout: minutes(inspection), ..Timings::default() };
        assert_eq!(timings.nonce_lifetime(), minutes(nonce), "{inspection}");
        assert_eq!(timings.token_lifetime(), minutes(token), "{inspection}");
        let kept_for = timings.token_lifetime() - timings.token_must_last();
        assert_eq!(kept_for, minutes(if inspection < 10 { 49 } else { 40 }), "{inspection}");
    }
}

#[test]
fn a_server_that_is_slow_to_boot_finds_its_script_within_a_raised_timeout() {
    let mut bench = Bench::at(Available);
    bench.timings.inspection_timeout = Duration::from_secs(30 * 60);
    bench.machine_pass();
    bench.pass();
    bench.machine_pass();
    bench.pass();
    assert_eq!(bench.state(), Inspecting);
    bench.wait(25 * 60);
    fetch(&mut bench);
    bench.wait(4 * 60);
    bench.machine_pass();
    assert_eq!(bench.machine.status.phase, Some(MachinePhase::Inspecting));
    let token = bench.credentials.as_ref().unwrap().token.expose();
    assert!(bench.read().verify_bearer(&bench.host, token, bench.now).is_ok());
}

#[test]
fn s087_another_machine_of_the_same_name_gets_its_own() {
    let mut bench = Bench::at(InUse);
    bench.machine.metadata.uid = "another".to_owned();
    let before = bench.credentials.clone().unwrap();
    let Ok(Ensured::Write(new)) = bench.ensure(Some(&before.run)) else { panic!("kept") };
    assert!(new.token != before.token && new.nonce != before.nonce);
    assert_eq!(new.consumer_uid, "another");
}

#[test]
fn s088_another_hosts_record_is_never_adopted_or_overwritten() {
    let mut bench = Bench::at(InUse);
    bench.credentials.as_mut().unwrap().host_uid = "another".to_owned();
    assert_eq!(bench.ensure(None), Err(EnsureError::Conflict));
    let decision = bench.decide_machine();
    bench.machine.status = decision.status.clone();
    assert_eq!(bench.machine_condition("InfrastructureReady").1, "BootstrapCredentialsConflict");
    assert_ne!(bench.machine.status.phase, Some(MachinePhase::Failed));
    assert!(decision.error.is_some());
    assert!(!decision.effects.iter().any(|e| matches!(e, MachineEffect::Boot(_))));
    bench.credentials = None;
    assert!(matches!(bench.ensure(None), Ok(Ensured::Write(_))));
}

#[test]
fn unreadable_is_not_absent() {
    let mut bench = Bench::at(InUse);
    bench.store = Store::Silent;
    assert_eq!(bench.ensure(None), Err(EnsureError::Unreadable));
    bench.store = Store::Answers;
    bench.host.metadata.uid.clear();
    assert_eq!(bench.ensure(None), Err(EnsureError::NoUid));
}

#[test]
fn s090_bearer_verification_says_no_for_every_reason() {
    let bench = Bench::at(Inspecting);
    let token = bench.credentials.as_ref().unwrap().token.expose().to_owned();
    let verify = |bench: &Bench, text: &str| bench.read().verify_bearer(&bench.host, text, bench.now).err();
    assert_eq!(verify(&bench, &token), None);
    assert_eq!(verify(&bench, &token[1..]), Some(Refused::Mismatch));
    assert_eq!(verify(&bench, ""), Some(Refused::Mismatch));
    let nonce = bench.credentials.as_ref().unwrap().nonce.expose();
    assert_eq!(verify(&bench, nonce), Some(Refused::Mismatch));
    let mut late = Bench::at(Inspecting);
    late.wait(3599);
    assert_eq!(verify(&late, &token), None);
    late.wait(1);
    assert_eq!(verify(&late, &token), Some(Refused::Expired), "the end itself is over");
    let mut released = Bench::at(Inspecting);
    released.host.spec.consumer_ref = None;
    assert_eq!(verify(&released, &token), Some(Refused::Unclaimed));
    let mut foreign = Bench::at(Inspecting);
    foreign.credentials.as_mut().unwrap().host_uid.clear();
    assert_eq!(verify(&foreign, &token), Some(Refused::Foreign));
    let mut none = Bench::at(Inspecting);
    none.credentials = None;
    assert_eq!(verify(&none, &token), Some(Refused::Absent));
}

#[test]
fn s091_the_mirror_is_shown_and_never_consulted() {
    let mut bench = Bench::at(Inspecting);
    let credentials = bench.credentials.clone().unwrap();
    let shown = bench.host.status.bootstrap.clone().unwrap();
    assert_eq!(shown.token_hash, credentials.token.sha256_hex());
    assert_eq!(shown.boot_nonce_hash, credentials.nonce.sha256_hex());
    bench.host.status.bootstrap.as_mut().unwrap().token_hash = "0".repeat(64);
    assert!(bench.read().verify_bearer(&bench.host, credentials.token.expose(), bench.now).is_ok());
    fetch(&mut bench);
    bench.credentials = None;
    let mut status = bench.host.status.bootstrap.clone();
    mirror(&mut status, bench.read(), &bench.host);
    let left = status.unwrap();
    assert!(left.token_hash.is_empty() && left.issued_at.is_none() && left.boot_nonce_hash.is_empty());
    assert!(left.boot_nonce_consumed_at.is_some() && !left.url.is_empty(), "record and URL stay");
}

#[test]
fn s092_a_moved_record_is_known_by_the_machines_name() {
    let mut bench = Bench::at(Inspecting);
    let token = bench.credentials.as_ref().unwrap().token.expose().to_owned();
    bench.host.metadata.uid = "moved".to_owned();
    assert!(bench.read().verify_bearer(&bench.host, &token, bench.now).is_err());
    bench.credentials.as_mut().unwrap().host_uid = "moved".to_owned();
    assert!(bench.read().verify_bearer(&bench.host, &token, bench.now).is_ok());
}

#[test]
fn s093_the_token_is_cut_once_the_host_is_ready() {
    let mut bench = Bench::at(Ready);
    let before = bench.credentials.clone().unwrap();
    bench.machine_pass();
    let after = bench.credentials.clone().unwrap();
    assert_eq!(after.token_expires_at, bench.now + Duration::from_secs(300));
    assert_eq!((after.token, after.nonce), (before.token, before.nonce));
    bench.wait(60);
    assert!(!bench.decide_machine().effects.iter().any(|e| matches!(e, MachineEffect::CutToken { .. })));
}

#[test]
fn s094_the_token_of_a_failed_machine_is_cut_and_nobody_elses() {
    let mut bench = Bench::run_failed();
    bench.machine_pass();
    assert_eq!(bench.machine.status.phase, Some(MachinePhase::Failed));
    assert_eq!(bench.credentials.as_ref().unwrap().token_expires_at, bench.now + Duration::from_secs(300));
    let cuts = |bench: &Bench| {
        bench.decide_machine().effects.iter().any(|e| matches!(e, MachineEffect::CutToken { .. }))
    };
    bench.mint();
    assert!(cuts(&bench), "also on later passes");
    bench.credentials.as_mut().unwrap().consumer_uid = "another".to_owned();
    assert!(!cuts(&bench));
}

#[test]
fn s095_s205_no_cut_while_the_bmc_is_away() {
    let mut bench = Bench::at(Error);
    let before = bench.credentials.clone();
    bench.machine_pass();
    assert_eq!(bench.credentials, before);
    bench.machine.status.phase = Some(MachinePhase::Failed);
    bench.observe(&down());
    bench.machine_pass();
    assert_eq!(bench.credentials, before);
    bench.pass();
    bench.machine_pass();
    assert_ne!(bench.credentials, before);
}

#[test]
fn s100_bearer_headers() {
    let table = [
        ("Bearer abc", Some("abc")),
        ("bearer abc", Some("abc")),
        ("BEARER   abc  ", Some("abc")),
        ("Bearer a b", None),
        ("Bearer ", None),
        ("Bearer", None),
        ("Basic abc", None),
        ("", None),
    ];
    for (header, token) in table {
        assert_eq!(bearer(header), token, "{header:?}");
    }
}

#[test]
fn s140_power_follows_credentials_and_a_boot_is_not_repeated() {
    let mut bench = Bench::at(InUse);
    bench.machine_pass();
    assert_eq!(bench.actions, [PowerAction::On]);
    bench.machine_pass();
    bench.machine_pass();
    assert_eq!(bench.actions.len(), 1, "the same claim is not restarted");
    let mut parked = Bench::at(InUse);
    parked.power = PowerState::On;
    parked.machine_pass();
    assert_eq!(parked.actions, [PowerAction::ForceRestart]);
}

#[test]
fn s042_a_view_of_the_host_older_than_its_own_boot_restarts_nothing() {
    use farrier_shared::lifecycle::{InspectRequest, OwnerRead, PowerState};
    let mut bench = Bench::at(InUse);
    let stale = bench.host.clone();
    bench.machine_pass();
    bench.pass();
    assert_eq!(bench.state(), farrier_shared::resource::HostState::Inspecting);
    let decision = bench.decide_machine_among(&[stale], OwnerRead::Standalone);
    let plan = decision.effects.iter().find_map(|effect| match effect {
        MachineEffect::Boot(plan) => Some(plan.clone()),
        _ => None,
    });
    let plan = plan.expect("the stale view shows a host that is to be booted");
    let running = plan.still_running(PowerState::On).map(str::to_owned);
    let Ok(Ensured::Keep(credentials)) = bench.ensure(running.as_deref()) else { panic!("minted anew") };
    assert_eq!(plan.power(&credentials, PowerState::On), None);
    assert_eq!(plan.request(&bench.host, &bench.machine, &credentials), InspectRequest::NoLongerApplies);
}

#[test]
fn s044_s045_who_lost_a_mint_goes_on_with_the_one_that_won() {
    let mut bench = Bench::at(InUse);
    bench.credentials = None;
    let mut minted = || match bench.ensure(None) {
        Ok(Ensured::Write(new)) => new,
        other => panic!("{other:?}"),
    };
    // Both have read that there are none; the store takes the first.
    let (won, lost) = (minted(), minted());
    assert_ne!(won.run, lost.run);
    bench.credentials = Some(won.clone());
    assert_eq!(bench.ensure(None), Ok(Ensured::Keep(won)));
}

#[test]
fn s043_a_restarted_controller_knows_a_boot_by_its_signed_request_alone() {
    let mut bench = Bench::at(InUse);
    bench.machine_pass();
    bench.booted = None;
    bench.machine_pass();
    assert_eq!(bench.actions.len(), 1);
    bench.booted = None;
    bench.signals[0].binding = None;
    bench.machine_pass();
    assert_eq!(bench.actions.len(), 2, "a request anybody may have written proves no boot");
}

#[test]
fn a_long_deployment_that_moves_keeps_its_token() {
    use farrier_shared::lifecycle::{HostEffect, Progress};
    let mut bench = Bench::at(Deploying);
    let run = bench.credentials.as_ref().unwrap().run.clone();
    let began = bench.now;
    let mut renewals = 0;
    for minute in 0..119_u64 {
        bench.progress = Some(Progress {
            run: run.clone(),
            step: "write".to_owned(),
            bytes: minute,
            advanced_at: bench.now,
        });
        let decision = bench.pass();
        renewals += decision.effects.iter().filter(|e| matches!(e, HostEffect::RenewToken(_))).count();
        assert!(bench.credentials.as_ref().unwrap().token_expires_at > bench.now, "minute {minute}");
        bench.wait(60);
    }
    assert!(renewals > 0);
    let limit = began + bench.timings.deployment_cap + bench.timings.token_grace;
    assert!(bench.credentials.as_ref().unwrap().token_expires_at <= limit);
}
