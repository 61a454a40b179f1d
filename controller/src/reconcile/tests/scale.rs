//! Many hosts at once, on a store with a disk.

use std::time::Duration;

use farrier_shared::resource::{HostState, PhysicalHost};

use super::fleet::Fleet;
use crate::store::Store;

/// As many as a debug build brings through in a few seconds.
const HOSTS: usize = 150;

#[tokio::test]
async fn a_room_full_of_hosts_is_claimed_and_booted_together() {
    let dir = tempfile::tempdir().unwrap();
    let hosts = std::env::var("FARRIER_TEST_HOSTS").ok().and_then(|n| n.parse().ok()).unwrap_or(HOSTS);
    let fleet = Fleet::over(Store::open(dir.path()).unwrap()).await;
    let begun = std::time::Instant::now();
    for number in 0..hosts {
        fleet.add_host(&format!("h{number}")).await;
        fleet.add_machine(&format!("m{number}"), Some("user-data")).await;
    }
    let created = begun.elapsed();
    let limit = Duration::from_secs(60 + hosts as u64 / 10);
    loop {
        let all = fleet.store.list::<PhysicalHost>(None).await.unwrap();
        let booted = all.iter().filter(|h| h.status.state == HostState::Inspecting).count();
        if booted == hosts {
            break;
        }
        assert!(begun.elapsed() < limit, "{booted} of {hosts} after {:?}", begun.elapsed());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    println!("{hosts} hosts: created after {created:?}, all inspecting after {:?}", begun.elapsed());
    for number in 0..hosts {
        let log = fleet.bmc(&format!("h{number}"), |b| b.log.clone());
        assert_eq!(log.iter().filter(|l| *l == "On").count(), 1, "h{number}: {log:?}");
    }
}
