//! What must hold in every history.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};

use farrier_shared::lifecycle::{host_view, reasons};
use farrier_shared::resource::condition::{self, Truth};
use farrier_shared::resource::machine::MachinePhase;
use farrier_shared::resource::{HostState, PhysicalHost};

use crate::event::{BmcState, Call};
use crate::world::{HOSTS, MACHINES, World};

fn check(holds: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(what()) }
}

fn show(host: &PhysicalHost) -> String {
    let s = &host.status;
    format!("{} {:?} run={:?} error={:?}", host.metadata.name, s.state, s.run, s.error_message)
}

/// After every step.
pub(crate) fn always(world: &World) -> Result<(), String> {
    check(world.violations.is_empty(), || world.violations.join("; "))?;
    for (index, host) in world.hosts.iter().enumerate() {
        let status = &host.status;
        if status.state == HostState::Ready {
            let run = status.run.as_ref();
            // One that was moved here was installed elsewhere, in a run that nobody here knows of.
            let reported = run.map_or(world.moved.contains(&index), |run| world.provisioned.contains(run));
            // A released host keeps the state's name until its next pass; its run was a good one all the same.
            check(reported, || format!("Ready without a bound success of its run: {}", show(host)))?;
        }
        if status.state == HostState::Available && host.spec.consumer_ref.is_none() {
            let clean = status.run.is_none()
                && status.inspection_timestamp.is_none()
                && status.deploying_timestamp.is_none()
                && status.inspection_phase.is_none()
                && status.error_message.is_empty();
            check(clean, || format!("a free host carries its last run: {}", show(host)))?;
        }
        check(status.conditions.len() <= 32, || "more than 32 conditions".to_owned())?;
    }
    let ids: Vec<_> = world
        .machines
        .iter()
        .flatten()
        .filter(|m| m.metadata.deletion_timestamp.is_none())
        .filter_map(|m| m.spec.provider_id.as_ref().map(ToString::to_string))
        .collect();
    let distinct: BTreeSet<_> = ids.iter().collect();
    check(distinct.len() == ids.len(), || format!("two machines have one host: {ids:?}"))?;
    for machine in world.machines.iter().flatten() {
        let ready = machine.status.ready;
        let failed = machine.status.phase == Some(MachinePhase::Failed);
        check(!(ready && failed), || format!("machine {} is both ready and failed", machine.metadata.name))?;
    }
    Ok(())
}

fn calm(world: &mut World) {
    for host in 0..HOSTS {
        world.step(&crate::event::Event::PauseHost { host, paused: false });
        world.bmcs[host].state = BmcState::Up;
        world.step(&crate::event::Event::Credentials { host, readable: true });
    }
    world.fetched.clear();
    for machine in 0..MACHINES {
        world.step(&crate::event::Event::Checksum { machine, answer: Some(9) });
        world.step(&crate::event::Event::PauseMachine { machine, paused: false });
    }
}

/// A report that was acknowledged is decided on, and a success leads to `Ready`, unless the run fails for a
/// reason of its own.
pub(crate) fn nothing_acknowledged_is_lost(world: &mut World) -> Result<(), String> {
    calm(world);
    world.rounds(6);
    always(world)?;
    for index in 0..HOSTS {
        let host = &world.hosts[index];
        let Some((credentials, _)) = world.credentials.get(&index) else { continue };
        let run = &credentials.run;
        let Some(machine) = world.machine_of(index) else { continue };
        let machine_failed = machine.status.phase == Some(MachinePhase::Failed);
        let ended = host.status.state == HostState::Ready || host_view::run_failed(host) || machine_failed;
        let decided = ended || host.status.state == HostState::Deploying;
        check(!world.reported.contains(run) || decided, || {
            format!("an acknowledged report was lost: {}", show(host))
        })?;
        check(!world.owed.contains(run) || ended, || {
            format!("an acknowledged success was lost: {}", show(host))
        })?;
    }
    Ok(())
}

/// Left alone, every run ends within its own time, and no host stands still without a reason that is told.
pub(crate) fn every_run_ends(world: &mut World) -> Result<(), String> {
    let timings = world.timings.clone();
    // Run and state of each host, while there are both.
    let running = |world: &World, state| -> Vec<Option<String>> {
        let of = |host: &PhysicalHost| host.status.run.clone().filter(|_| host.status.state == state);
        world.hosts.iter().map(of).collect()
    };
    // Twice: the first time ends what the history left, the second what its machines have begun since.
    for _ in 0..2 {
        let inspecting = running(world, HostState::Inspecting);
        let deploying = running(world, HostState::Deploying);
        let begun = world.now;
        let by_then = [
            (HostState::Inspecting, inspecting, timings.inspection_timeout + timings.inspection_slack),
            (HostState::Deploying, deploying, timings.deployment_timeout),
        ];
        for (state, runs, limit) in by_then {
            world.now = world.now.max(begun + limit);
            world.rounds(4);
            always(world)?;
            for (index, run) in running(world, state).into_iter().enumerate() {
                check(run.is_none() || run != runs[index], || {
                    format!("still running after its deadline of {limit:?}: {}", show(&world.hosts[index]))
                })?;
            }
        }
    }
    (0..HOSTS).try_for_each(|index| waits_for_something(world, index))
}

/// Nothing is in the way of a host by now: one that has not come further has a machine that says why, or none.
fn waits_for_something(world: &World, index: usize) -> Result<(), String> {
    let host = &world.hosts[index];
    if !matches!(host.status.state, HostState::New | HostState::InUse | HostState::Error) {
        return Ok(());
    }
    let claimed = host.spec.consumer_ref.is_some();
    check(claimed, || format!("not free although its BMC answers: {}", show(host)))?;
    // The operator who removed the machine alone knows what is to become of its host.
    let Some(machine) = world.machine_of(index) else { return Ok(()) };
    let failed = machine.status.phase == Some(MachinePhase::Failed);
    check(failed, || format!("its machine waits for nothing: {}", show(host)))?;
    let told = condition::get(&machine.status.conditions, reasons::INFRASTRUCTURE_READY);
    let told = told.is_some_and(|c| c.status == Truth::False && !c.message.is_empty());
    check(told, || format!("machine {} failed and does not say why", machine.metadata.name))
}

/// Tokens and nonces are nowhere an operator looks.
pub(crate) fn no_secret_leaks(world: &World) -> Result<(), String> {
    let mut shown = serde_json::to_string(&world.hosts).unwrap();
    shown += &serde_json::to_string(&world.machines).unwrap();
    shown += &serde_json::to_string(&world.history).unwrap();
    shown += &world.notes.join("\n");
    for (credentials, _) in world.credentials.values() {
        shown += &format!("{credentials:?}");
    }
    for signal in world.seen_signals.iter().rev().take(20) {
        shown += &format!("{signal:?}");
    }
    for secret in &world.secrets {
        check(!shown.contains(secret.as_str()), || "a secret is shown".to_owned())?;
    }
    Ok(())
}

/// Whatever happened, deleting the machines and making new ones leads to an installed host.
pub(crate) fn every_host_can_be_used_again(world: &mut World) -> Result<(), String> {
    calm(world);
    for machine in 0..MACHINES {
        world.step(&crate::event::Event::Delete { machine, force: false });
    }
    world.rounds(3);
    for index in 0..HOSTS {
        let host = &world.hosts[index];
        let waiting = world.signals.get(&index).is_some_and(|s| !s.is_empty());
        check(host.status.state == HostState::Available, || {
            format!("not free after release: {}", show(host))
        })?;
        check(!waiting, || format!("signals wait on a free host: {}", show(host)))?;
    }
    for machine in 0..MACHINES {
        world.create(machine);
    }
    // One has to fetch and pin its digest before it claims a host.
    world.rounds(7);
    let client = IpAddr::V4(Ipv4Addr::new(10, 0, 1, 1));
    let running: Vec<usize> =
        (0..HOSTS).filter(|i| world.hosts[*i].status.state == HostState::Inspecting).collect();
    check(running.len() == MACHINES, || format!("{} of {MACHINES} machines run", running.len()))?;
    for host in &running {
        world.fetch(*host, client, None);
        world.call(0, Call::Report { cores: 16 }, None);
        // The agent does not wait for the hardware to be accepted.
        world.call(0, Call::Provisioned, None);
    }
    world.rounds(4);
    always(world)?;
    for host in running {
        let host = &world.hosts[host];
        check(host.status.state == HostState::Ready, || {
            format!("a good run did not end Ready: {}", show(host))
        })?;
    }
    let done = world.machines.iter().flatten().filter(|m| m.status.ready).count();
    check(done == MACHINES, || format!("{done} of {MACHINES} machines are ready"))
}
