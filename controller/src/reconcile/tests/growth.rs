//! What a host costs does not depend on how many there are.
//!
//! Counted is processor time of this thread, on which store, BMCs and passes all run here. Work that grows with their
//! number costs each of four times the hosts four times as much. What does not still grows a little: trees become deeper,
//! and what fits into the processor's caches with few hosts does not with many, which shows most where a host is only
//! read now and then.

use std::time::Duration;

use farrier_shared::lifecycle::SignalKey;
use farrier_shared::resource::HostState;
use nix::sys::resource::{UsageWho, getrusage};

use super::fleet::Fleet;

const FEW: usize = 100;
const MANY: usize = 4 * FEW;
/// Until everything that is done hourly was done once; it takes more hosts longer to come there.
const SETTLE: Duration = Duration::from_secs(3600);
/// How long they are left alone: whole turns of what is done hourly, and so of each BMC's too. With a part of one, more
/// of many hosts than of few have an hourly look within it.
const IDLE: Duration = Duration::from_secs(3600);

/// Processor time of this thread so far.
fn busy() -> Duration {
    let usage = getrusage(UsageWho::RUSAGE_THREAD).unwrap();
    let micros = |time: nix::sys::time::TimeVal| time.tv_sec() * 1_000_000 + time.tv_usec();
    Duration::from_micros(u64::try_from(micros(usage.user_time()) + micros(usage.system_time())).unwrap())
}

/// What each of `hosts` hosts costs in each stage of its life, and how many per cent of that each of four times as many
/// may cost.
async fn cost_of_each(hosts: usize) -> Vec<(&'static str, u32, Duration)> {
    let fleet = Fleet::start().await;
    let names: Vec<String> = (0..hosts).map(|number| format!("h{number}")).collect();
    let mut costs = Vec::new();
    let mut begun = busy();
    let mut stage = |name, percent| {
        costs.push((name, percent, (busy() - begun) / u32::try_from(hosts).unwrap()));
        begun = busy();
    };
    for name in &names {
        fleet.add_host(name).await;
    }
    for name in &names {
        fleet.until_host(name, 600, HostState::Available).await;
    }
    stage("enrolled", 200);
    for number in 0..hosts {
        fleet.add_machine(&format!("m{number}"), Some("user-data")).await;
    }
    for name in &names {
        fleet.until_host(name, 600, HostState::Inspecting).await;
    }
    stage("booted", 200);
    for name in &names {
        fleet.agent_reports(name).await;
    }
    for name in &names {
        fleet.until_host(name, 600, HostState::Deploying).await;
        fleet.agent_says(name, SignalKey::Provisioned, "provisioned", None).await;
    }
    for name in &names {
        fleet.until_host(name, 600, HostState::Ready).await;
    }
    stage("installed", 200);
    // What follows from the installation is not what an installed host costs.
    tokio::time::sleep(SETTLE).await;
    stage("settled", 300);
    tokio::time::sleep(IDLE).await;
    stage("left alone", 300);
    costs
}

/// Another program beside this one costs it time as well, by the caches they share, and only ever more: of each cost the
/// least that was seen counts, and growth is what is still there in the last of a few attempts.
const ATTEMPTS: usize = 4;

#[tokio::test(start_paused = true)]
async fn what_a_host_costs_does_not_grow_with_their_number() {
    // Once for what is made only once.
    cost_of_each(20).await;
    let (mut few, mut many) = (cost_of_each(FEW).await, cost_of_each(MANY).await);
    for _ in 1..ATTEMPTS {
        if grown(&few, &many).is_none() {
            break;
        }
        keep_least(&mut few, cost_of_each(FEW).await);
        keep_least(&mut many, cost_of_each(MANY).await);
    }
    assert_eq!(grown(&few, &many), None);
}

fn keep_least(least: &mut [(&'static str, u32, Duration)], again: Vec<(&'static str, u32, Duration)>) {
    for ((.., least), (.., again)) in least.iter_mut().zip(again) {
        *least = again.min(*least);
    }
}

/// The first stage that costs each of many hosts more than it may.
fn grown(few: &[(&str, u32, Duration)], many: &[(&str, u32, Duration)]) -> Option<String> {
    few.iter().zip(many).find_map(|((stage, percent, few), (.., many))| {
        println!("{stage}: {few:?} of {FEW}, {many:?} of {MANY}");
        let text = format!("{stage}: each of {FEW} hosts cost {few:?}, each of {MANY} {many:?}");
        (*many > *few * *percent / 100).then_some(text)
    })
}
