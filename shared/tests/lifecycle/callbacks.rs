//! Group E: which reports are put on record, state by state.

use farrier_shared::lifecycle::callback::{
    NoUserData, Reception, inspection, provision_failed, provisioned, user_data,
};
use farrier_shared::resource::HostState::{Available, Deploying, Error, InUse, Inspecting, New, Ready};
use farrier_shared::resource::machine::{HardwareRequirements, MachinePhase};

use crate::bench::{Bench, down};
use Reception::{Clear, Ignore, Record};

#[test]
fn s104_s110_each_state_takes_what_it_can_use() {
    let table = [
        // state, inspection, provisioned, provision-failed
        (New, Ignore, Ignore, Ignore),
        (Available, Ignore, Ignore, Ignore),
        (InUse, Record, Ignore, Ignore),
        (Inspecting, Record, Record, Record),
        (Deploying, Record, Record, Record),
        (Ready, Record, Record, Ignore),
        (Error, Record, Ignore, Clear),
    ];
    for (state, report, success, failure) in table {
        let host = Bench::at(state).host;
        assert_eq!(
            (inspection(&host, false), provisioned(&host, false), provision_failed(&host, false)),
            (report, success, failure),
            "{state:?}"
        );
    }
}

#[test]
fn s107_hardware_that_may_yet_be_refused_gets_no_user_data() {
    for state in [InUse, Inspecting, Deploying, Ready, Error] {
        let mut bench = Bench::at(state);
        assert_eq!(
            user_data(&bench.host, &bench.machine),
            Ok(()),
            "{state:?}: nothing is asked of the hardware"
        );
        bench.machine.spec.hardware_requirements = Some(HardwareRequirements::default());
        assert_eq!(
            user_data(&bench.host, &bench.machine),
            Ok(()),
            "{state:?}: nothing is asked of it either"
        );
        let wanted = HardwareRequirements { min_disk_gb: Some(100), ..HardwareRequirements::default() };
        bench.machine.spec.hardware_requirements = Some(wanted);
        let accepted = matches!(state, Deploying | Ready);
        let expected = if accepted { Ok(()) } else { Err(NoUserData::NotAccepted) };
        assert_eq!(user_data(&bench.host, &bench.machine), expected, "{state:?}");
        bench.machine.status.phase = Some(MachinePhase::Failed);
        assert_eq!(user_data(&bench.host, &bench.machine), Err(NoUserData::Failed), "{state:?}");
    }
    let failed = Bench::run_failed();
    assert_eq!(user_data(&failed.host, &failed.machine), Err(NoUserData::Failed));
}

#[test]
fn s109_a_failed_run_takes_nothing() {
    let host = Bench::run_failed().host;
    assert_eq!(
        (inspection(&host, false), provisioned(&host, false), provision_failed(&host, false)),
        (Ignore, Ignore, Clear)
    );
}

#[test]
fn an_interrupted_deployment_takes_its_result() {
    let mut bench = Bench::at(Error);
    bench.host.status.deploying_timestamp = Some(bench.now);
    assert_eq!((provisioned(&bench.host, false), provision_failed(&bench.host, false)), (Record, Record));
}

#[test]
fn a_released_host_takes_nothing_but_what_ends_a_deployment() {
    let mut bench = Bench::at(Inspecting);
    bench.host.spec.consumer_ref = None;
    let host = &bench.host;
    assert_eq!(
        (inspection(host, true), provisioned(host, true), provision_failed(host, true)),
        (Ignore, Ignore, Ignore)
    );
}

#[test]
fn an_agent_ahead_of_its_host_is_not_lost() {
    let mut bench = Bench::at(InUse);
    bench.observe(&down());
    bench.report("{}");
    bench.observe(&down());
    assert_eq!((provisioned(&bench.host, false), provision_failed(&bench.host, false)), (Record, Record));
}

#[test]
fn a_result_that_comes_before_the_report_is_taken_is_kept() {
    for state in [InUse, Error] {
        let host = Bench::at(state).host;
        assert_eq!((provisioned(&host, true), provision_failed(&host, true)), (Record, Record), "{state:?}");
    }
    let host = Bench::run_failed().host;
    assert_eq!((provisioned(&host, true), provision_failed(&host, true)), (Ignore, Clear));
}
