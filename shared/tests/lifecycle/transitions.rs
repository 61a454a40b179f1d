//! The transition table, row by row, against `transitions.csv` and against what passes really do.

use std::collections::BTreeSet;
use std::time::Duration;

use farrier_shared::lifecycle::host_table::{Cause, Guard, TABLE, next};
use farrier_shared::lifecycle::{BmcObservation, HostEffect, SignalKey};
use farrier_shared::resource::HostState;

use crate::bench::{Bench, down};

const STATES: [HostState; 7] = [
    HostState::New,
    HostState::Available,
    HostState::InUse,
    HostState::Inspecting,
    HostState::Deploying,
    HostState::Ready,
    HostState::Error,
];

fn state_name(state: HostState) -> &'static str {
    if state == HostState::New { "New" } else { state.as_str() }
}

fn file() -> BTreeSet<[String; 4]> {
    include_str!("../transitions.csv")
        .lines()
        .skip(1)
        .map(|line| {
            let fields: Vec<String> = line.split(',').map(str::to_owned).collect();
            fields.try_into().expect("four fields")
        })
        .collect()
}

#[test]
fn the_table_has_exactly_the_rows_of_the_file() {
    let table: BTreeSet<[String; 4]> = TABLE
        .iter()
        .map(|t| {
            [state_name(t.from), t.cause.as_str(), t.guard.as_str(), state_name(t.to)].map(str::to_owned)
        })
        .collect();
    assert_eq!(table, file());
    assert_eq!(TABLE.len(), table.len(), "a row stands twice");
}

#[test]
fn what_has_no_row_moves_nothing_whatever_holds() {
    for from in STATES {
        for cause in Cause::ALL {
            for held in 0..1_u32 << Guard::ALL.len() {
                let holds = |guard: Guard| {
                    guard == Guard::Always
                        || Guard::ALL.iter().position(|g| *g == guard).is_some_and(|i| held >> i & 1 == 1)
                };
                let found = next(from, cause, holds).map(|t| state_name(t.to).to_owned());
                let expected = file().into_iter().find(|[f, c, g, _]| {
                    f == state_name(from)
                        && c == cause.as_str()
                        && Guard::ALL.iter().any(|guard| guard.as_str() == g && holds(*guard))
                });
                assert_eq!(found, expected.map(|[.., to]| to), "{from:?} {cause:?} {held:b}");
            }
        }
    }
}

/// Brings `cause` about on a bench and returns whether the host's history names it.
fn provoke(mut bench: Bench, cause: Cause) -> bool {
    let quiet = BmcObservation::NotAsked;
    let up = BmcObservation::Up(Default::default());
    let mut signal = |key, value| {
        if bench.credentials.is_none() {
            bench.mint();
        }
        bench.sign(key, value);
    };
    let bmc = match cause {
        Cause::Answered => {
            bench.host.spec.consumer_ref = None;
            up
        }
        Cause::Claimed => {
            bench.host.spec.consumer_ref =
                Some(farrier_shared::lifecycle::claim::reference_to(&bench.machine));
            up
        }
        Cause::Fault => down(),
        Cause::Adopted => {
            bench.host.spec.consumer_ref =
                Some(farrier_shared::lifecycle::claim::reference_to(&bench.machine));
            bench.machine.spec.provider_id = Some("b7://default/host-01".parse().unwrap());
            quiet
        }
        Cause::Inspect => {
            signal(SignalKey::InspectionRequest, "inspect");
            quiet
        }
        Cause::InspectComplete => {
            signal(SignalKey::InspectionRequest, "inspect-complete");
            quiet
        }
        Cause::Timeout => {
            signal(SignalKey::InspectionRequest, "timeout");
            quiet
        }
        Cause::RunReplaced => {
            bench.mint();
            quiet
        }
        Cause::Provisioned => {
            signal(SignalKey::Provisioned, "provisioned");
            quiet
        }
        Cause::ProvisionFailed => {
            signal(SignalKey::ProvisionFailed, "no space");
            quiet
        }
        Cause::InspectionOverdue | Cause::DeploymentOverdue => {
            bench.now = bench.now + Duration::from_secs(24 * 3600);
            quiet
        }
    };
    let before = bench.state();
    let decision = bench.observe(&bmc);
    decision.effects.iter().any(|effect| {
        matches!(effect, HostEffect::Record(e) if e.event == cause.as_str() && e.from == before.as_str())
    })
}

/// Every row is reached by a real pass, and every pair without one is not. Guards: a plain bench is claimed
/// where its state implies it, its `Inspecting` has no report, its `Error` is the BMC's.
#[test]
fn passes_do_what_the_table_says() {
    for state in STATES {
        for cause in Cause::ALL {
            let guard = TABLE.iter().find(|t| t.from == state && t.cause == cause).map(|t| t.guard);
            let expected = match guard {
                Some(Guard::Always | Guard::NotRunFailed) => true,
                Some(Guard::Unclaimed | Guard::ReportIn | Guard::DeployInterrupted) | None => false,
            };
            assert_eq!(provoke(Bench::at(state), cause), expected, "{state:?} {cause:?}");
        }
    }
}

#[test]
fn guarded_rows_are_reached_when_their_guard_holds() {
    for state in [HostState::Inspecting, HostState::Deploying, HostState::Ready] {
        let mut bench = Bench::at(state);
        bench.host.spec.consumer_ref = None;
        assert!(provoke(bench, Cause::Fault), "{state:?}");
    }
    let mut reported = Bench::at(HostState::Inspecting);
    reported.report("{}");
    reported.pass();
    assert!(provoke(reported, Cause::InspectComplete));
    for cause in [Cause::Provisioned, Cause::ProvisionFailed] {
        let mut interrupted = Bench::at(HostState::Error);
        interrupted.host.status.deploying_timestamp = Some(interrupted.now);
        assert!(provoke(interrupted, cause), "{cause:?}");
    }
}

#[test]
fn a_failed_run_is_left_only_by_release() {
    for cause in Cause::ALL {
        let left = provoke(Bench::run_failed(), cause);
        assert_eq!(left, cause == Cause::Answered, "{cause:?}");
    }
}
