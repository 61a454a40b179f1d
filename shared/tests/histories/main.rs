//! Random histories of a small fleet, driven through the real decisions, checked after every step.
//!
//! Number of histories: environment variable `FARRIER_HISTORIES`. A failing one is shrunk and printed with the
//! seed of the whole series; `FARRIER_SEED` plays a series again.

#![expect(clippy::unwrap_used, reason = "the model's own parts are known to be there")]

mod event;
mod invariants;
mod machine_passes;
#[path = "../objects/mod.rs"]
mod objects;
mod passes;
mod server;
mod world;

use std::hash::{BuildHasher as _, RandomState};

use event::{Event, events};
use proptest::test_runner::{Config, RngSeed, TestRunner};
use world::World;

/// Enough to find what there is to find without holding up every test run.
const DEFAULT_HISTORIES: u32 = 2000;

fn histories() -> u32 {
    std::env::var("FARRIER_HISTORIES").ok().and_then(|n| n.parse().ok()).unwrap_or(DEFAULT_HISTORIES)
}

fn seed() -> u64 {
    let given = std::env::var("FARRIER_SEED").ok().and_then(|n| n.parse().ok());
    given.unwrap_or_else(|| RandomState::new().hash_one("histories"))
}

fn play(history: &[Event]) -> Result<(), String> {
    let mut world = World::new();
    for event in history {
        world.step(event);
        invariants::always(&world)?;
    }
    invariants::nothing_acknowledged_is_lost(&mut world)?;
    invariants::every_run_ends(&mut world)?;
    invariants::no_secret_leaks(&world)?;
    invariants::every_host_can_be_used_again(&mut world)
}

#[test]
fn every_history_keeps_the_invariants() {
    let seed = seed();
    let config = Config {
        rng_seed: RngSeed::Fixed(seed),
        cases: histories(),
        max_shrink_iters: 20_000,
        failure_persistence: None,
        ..Config::default()
    };
    let mut runner = TestRunner::new(config);
    let outcome =
        runner.run(&events(), |history| play(&history).map_err(proptest::test_runner::TestCaseError::fail));
    if let Err(error) = outcome {
        panic!("FARRIER_SEED={seed}: {error}");
    }
}

/// The checks above could all pass on a world in which nothing ever happens.
#[test]
fn an_undisturbed_history_installs_every_machine() {
    let mut world = World::new();
    invariants::every_host_can_be_used_again(&mut world).unwrap();
    assert!(!world.provisioned.is_empty());
}

/// The same with everything the model can do to a machine's checksum file, a host's credentials and an installed
/// pair: histories in which these never matter would prove nothing about them.
#[test]
fn checksum_files_unreadable_credentials_and_moves_leave_their_mark() {
    let mut world = World::new();
    world.step(&Event::Checksum { machine: 1, answer: None });
    world.rounds(6);
    let claims = |world: &World| world.hosts.iter().filter(|h| h.spec.consumer_ref.is_some()).count();
    assert_eq!(claims(&world), 1, "a machine whose checksum file cannot be had claims nothing");
    invariants::every_host_can_be_used_again(&mut world).unwrap();
    assert_eq!(claims(&world), 2);

    let host = (0..world.hosts.len()).find(|h| world.machine_of(*h).is_some()).unwrap();
    world.step(&Event::Move { host });
    assert_eq!(world.hosts[host].status.state, farrier_shared::resource::HostState::New);
    world.rounds(6);
    assert_eq!(world.hosts[host].status.state, farrier_shared::resource::HostState::Ready, "adopted");
    invariants::always(&world).unwrap();

    // Let go of, it is still called Ready until its own next pass.
    for machine in 0..world::MACHINES {
        world.step(&Event::Delete { machine, force: false });
        world.step(&Event::MachinePass { machine, cut: None, meanwhile: None });
        invariants::always(&world).unwrap();
    }

    let mut world = World::new();
    for host in 0..world.hosts.len() {
        world.step(&Event::Credentials { host, readable: false });
    }
    world.rounds(6);
    assert!(world.credentials.is_empty(), "nothing is minted over what cannot be read");
    invariants::every_host_can_be_used_again(&mut world).unwrap();
}

/// A world whose decisions are tampered with must be caught, or the checks are worth nothing.
#[test]
fn a_host_made_ready_without_a_report_is_caught() {
    let mut world = World::new();
    world.tamper(0, |host| host.status.state = farrier_shared::resource::HostState::Ready);
    assert!(invariants::always(&world).is_err());
}
