//! What passes remember may be a moment behind the store.

use farrier_shared::resource::HostState;

use super::fleet::{Fleet, key};
use crate::reconcile::Shell;
use crate::reconcile::rooms::Lane;

#[tokio::test(start_paused = true)]
async fn a_machine_whose_claim_was_forgotten_claims_no_second_host() {
    let mut fleet = Fleet::start().await;
    fleet.add_host("h1").await;
    let free = fleet.until_host("h1", 5, HostState::Available).await;
    fleet.add_machine("m1", None).await;
    fleet.until_host("h1", 30, HostState::InUse).await;
    fleet.add_host("h2").await;
    let other = fleet.until_host("h2", 5, HostState::Available).await;
    fleet.stop().await;

    // As after a pass over h1 that read it just before it was claimed.
    let shell = Shell::new(fleet.context());
    for host in [&free, &other] {
        shell.index.see(host);
    }
    shell.index.complete();
    let place = shell.rooms.enter(Lane::Pass).unwrap();
    shell.machine_pass(&key("m1"), place).await.unwrap();
    assert!(fleet.host("h2").await.spec.consumer_ref.is_none(), "m1 has two hosts");
    assert!(fleet.host("h1").await.spec.consumer_ref.is_some());
}
