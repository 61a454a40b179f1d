//! What may happen in a history.

use farrier_shared::lifecycle::fault::{BmcObservation, Failure, Refusal, Transient};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::world::{HOSTS, MACHINES};

const YEAR: i64 = 365 * 24 * 3600;

/// Where a pass stops, counted in effects; `None` is a whole pass.
pub(crate) type Cut = Option<usize>;

#[derive(Clone, Debug)]
pub(crate) enum Event {
    /// A host's pass; `meanwhile` happens between its reads and its writes.
    HostPass { host: usize, ask_bmc: bool, cut: Cut, meanwhile: Option<Box<Event>> },
    /// A machine's pass, likewise.
    MachinePass { machine: usize, cut: Cut, meanwhile: Option<Box<Event>> },
    /// Somebody fetches a boot script with the host's present nonce, or with an earlier one.
    Fetch { host: usize, client: u8, old_nonce: Option<usize> },
    /// Some agent, running or long gone, calls back.
    Call { agent: usize, call: Call, meanwhile: Option<Box<Event>> },
    /// Somebody with access to the store writes a signal without the run's credentials.
    Forge { host: usize, kind: Forgery },
    /// Somebody with access to the store writes a signal again that was seen before, perhaps on another host.
    Replay { host: usize, signal: usize },
    /// The BMC's ways change.
    Bmc { host: usize, state: BmcState },
    /// Time passes.
    Wait { seconds: u16 },
    /// The controller's clock is set.
    SetClock { seconds: i64 },
    /// The operator deletes a machine.
    Delete { machine: usize, force: bool },
    /// The operator makes a machine again.
    Create { machine: usize },
    /// The operator pauses or unpauses a machine.
    PauseMachine { machine: usize, paused: bool },
    /// The operator pauses or unpauses a host.
    PauseHost { host: usize, paused: bool },
    /// The controller is killed and started: what it only remembered is gone.
    Restart,
    /// A host's credentials can be read again, or not any more.
    Credentials { host: usize, readable: bool },
    /// A machine's checksum file is as this from now on; it cannot be fetched without an answer.
    Checksum { machine: usize, answer: Option<u8> },
    /// The operator names another checksum file.
    ChecksumFile { machine: usize, place: u8 },
    /// A host and the machine that has it are moved here from another cluster.
    Move { host: usize },
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Call {
    Report { cores: i32 },
    Provisioned,
    Failed,
    Progress { bytes: u32 },
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Forgery {
    Unsigned(usize),
    WrongValue,
    WrongKey,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BmcState {
    Up,
    Unreachable,
    Unauthorized,
    Broken,
}

impl BmcState {
    pub(crate) fn fault(self) -> Option<BmcObservation> {
        match self {
            Self::Up => None,
            Self::Unreachable => Some(BmcObservation::Unreachable { class: Transient::Refused }),
            Self::Unauthorized => Some(BmcObservation::Refused {
                refusal: Refusal::CredentialsNotAuthorized,
                message: "not authorized for this address".to_owned(),
            }),
            Self::Broken => Some(BmcObservation::Failed {
                failure: Failure::Connection,
                message: "certificate not trusted".to_owned(),
            }),
        }
    }
}

fn cut() -> impl Strategy<Value = Cut> {
    prop_oneof![3 => Just(None), 1 => (0..6_usize).prop_map(Some)]
}

fn plain() -> impl Strategy<Value = Event> + Clone {
    let bmc = prop_oneof![
        4 => Just(BmcState::Up),
        2 => Just(BmcState::Unreachable),
        1 => Just(BmcState::Unauthorized),
        1 => Just(BmcState::Broken)
    ];
    let call = prop_oneof![
        4 => (1..3_i32).prop_map(|n| Call::Report { cores: n * 8 }),
        4 => Just(Call::Provisioned),
        1 => Just(Call::Failed),
        2 => any::<u32>().prop_map(|bytes| Call::Progress { bytes }),
    ];
    let forgery = prop_oneof![
        (0..6_usize).prop_map(Forgery::Unsigned),
        Just(Forgery::WrongValue),
        Just(Forgery::WrongKey)
    ];
    let waits = prop_oneof![4 => 1..40_u16, 2 => 40..400_u16, 1 => 400..8000_u16];
    let host = 0..HOSTS;
    let machine = 0..MACHINES;
    prop_oneof![
        14 => (host.clone(), any::<bool>(), cut())
            .prop_map(|(host, ask_bmc, cut)| Event::HostPass { host, ask_bmc, cut, meanwhile: None }),
        14 => (machine.clone(), cut())
            .prop_map(|(machine, cut)| Event::MachinePass { machine, cut, meanwhile: None }),
        6 => (host.clone(), 0..2_u8, prop_oneof![5 => Just(None), 1 => (0..4_usize).prop_map(Some)])
            .prop_map(|(host, client, old_nonce)| Event::Fetch { host, client, old_nonce }),
        14 => (0..8_usize, call).prop_map(|(agent, call)| Event::Call { agent, call, meanwhile: None }),
        5 => (host.clone(), forgery).prop_map(|(host, kind)| Event::Forge { host, kind }),
        5 => (host.clone(), 0..32_usize).prop_map(|(host, signal)| Event::Replay { host, signal }),
        3 => (host.clone(), bmc).prop_map(|(host, state)| Event::Bmc { host, state }),
        5 => waits.prop_map(|seconds| Event::Wait { seconds }),
        1 => prop_oneof![Just(7200), Just(-7200), Just(10 * YEAR), Just(-10 * YEAR)]
            .prop_map(|seconds| Event::SetClock { seconds }),
        1 => (machine.clone(), any::<bool>()).prop_map(|(machine, force)| Event::Delete { machine, force }),
        1 => machine.clone().prop_map(|machine| Event::Create { machine }),
        1 => (machine.clone(), any::<bool>())
            .prop_map(|(machine, paused)| Event::PauseMachine { machine, paused }),
        1 => (host.clone(), any::<bool>()).prop_map(|(host, paused)| Event::PauseHost { host, paused }),
        1 => Just(Event::Restart),
        2 => (host.clone(), any::<bool>())
            .prop_map(|(host, readable)| Event::Credentials { host, readable }),
        2 => (machine.clone(), prop_oneof![1 => Just(None), 3 => (1..4_u8).prop_map(Some)])
            .prop_map(|(machine, answer)| Event::Checksum { machine, answer }),
        1 => (machine, 0..2_u8).prop_map(|(machine, place)| Event::ChecksumFile { machine, place }),
        1 => host.prop_map(|host| Event::Move { host }),
    ]
}

/// A stretch in which one run goes forward as it should but for a few passes that are cut short or interrupted,
/// for histories that reach the late states often.
fn forward() -> impl Strategy<Value = Vec<Event>> {
    let upsets = vec(prop_oneof![4 => Just(None), 1 => (0..4_usize).prop_map(Some)], 11);
    let between = vec(prop_oneof![6 => Just(None), 1 => plain().prop_map(|e| Some(Box::new(e)))], 11);
    let delays = vec(prop_oneof![6 => Just(0), 1 => 590..700_u16, 1 => 1190..3500_u16], 2);
    (0..HOSTS, 0..MACHINES, upsets, between, delays).prop_map(
        move |(host, machine, cuts, between, delays)| {
            let at = |n: usize| (cuts[n], between[n].clone());
            let host_pass = |n| {
                let (cut, meanwhile) = at(n);
                Event::HostPass { host, ask_bmc: true, cut, meanwhile }
            };
            let machine_pass = |n| {
                let (cut, meanwhile) = at(n);
                Event::MachinePass { machine, cut, meanwhile }
            };
            let call = |n, call| Event::Call { agent: 0, call, meanwhile: at(n).1 };
            // Two more for a machine that has to fetch its digest first.
            let undisturbed = Event::MachinePass { machine, cut: None, meanwhile: None };
            vec![
                undisturbed.clone(),
                undisturbed,
                host_pass(0),
                machine_pass(1),
                host_pass(2),
                machine_pass(3),
                host_pass(4),
                Event::Fetch { host, client: 0, old_nonce: None },
                Event::Wait { seconds: delays[0] },
                call(5, Call::Report { cores: 16 }),
                host_pass(6),
                machine_pass(7),
                host_pass(8),
                Event::Wait { seconds: delays[1] },
                machine_pass(7),
                call(9, Call::Provisioned),
                host_pass(10),
            ]
        },
    )
}

fn interrupted() -> impl Strategy<Value = Event> {
    (plain(), prop_oneof![3 => Just(None), 1 => plain().prop_map(|e| Some(Box::new(e)))]).prop_map(
        |(event, between)| match event {
            Event::HostPass { host, ask_bmc, cut, .. } => {
                Event::HostPass { host, ask_bmc, cut, meanwhile: between }
            }
            Event::MachinePass { machine, cut, .. } => {
                Event::MachinePass { machine, cut, meanwhile: between }
            }
            Event::Call { agent, call, .. } => Event::Call { agent, call, meanwhile: between },
            other => other,
        },
    )
}

/// A whole history: stretches of progress, cut up by everything else.
pub(crate) fn events() -> impl Strategy<Value = Vec<Event>> {
    let part = prop_oneof![
        4 => vec(interrupted(), 1..8),
        2 => forward(),
        3 => (forward(), 0..17_usize).prop_map(|(mut events, upto)| { events.truncate(upto); events }),
    ];
    vec(part, 1..10).prop_map(|parts| parts.concat())
}
