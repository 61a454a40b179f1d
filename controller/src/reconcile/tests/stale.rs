//! What passes remember may be a moment behind the store.

use farrier_shared::resource::HostState;

use super::fleet::{Fleet, key};
use crate::reconcile::Shell;
use crate::reconcile::rooms::Lane;

#[tokio::test(start_paused = true)]
async fn a_machine_whose_claim_was_forgotten_claims_no_second_host() {
    let mut fleet = Fleet::start().await;
    fleet.add_host("z").await;
    let free = fleet.until_host("z", 5, HostState::Available).await;
    fleet.add_machine("m1", None).await;
    fleet.until_host("z", 30, HostState::InUse).await;
    // More free hosts than are looked at for one claim, all of them before the one it has.
    let names: Vec<String> = (0..12).map(|n| format!("a{n}")).collect();
    for name in &names {
        fleet.add_host(name).await;
        fleet.until_host(name, 5, HostState::Available).await;
    }
    fleet.stop().await;

    // As after a pass over the host that read it just before it was claimed.
    let shell = Shell::new(fleet.context());
    shell.index.see(&free);
    for name in &names {
        shell.index.see(&fleet.host(name).await);
    }
    shell.index.complete();
    let place = shell.rooms.enter(Lane::Pass).unwrap();
    shell.machine_pass(&key("m1"), place).await.unwrap();
    for name in &names {
        assert!(fleet.host(name).await.spec.consumer_ref.is_none(), "m1 has {name} besides its own");
    }
    assert!(fleet.host("z").await.spec.consumer_ref.is_some());
}
