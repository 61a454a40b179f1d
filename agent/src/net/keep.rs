//! Keeps the network as leases, routers and links change, for as long as the run takes.

use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::config::NetworkConfig;
use super::family::News;
use super::netlink::Netlink;
use super::trial::{Trial, Turn};

/// Applies all news of one interface.
pub(super) async fn keep(
    netlink: Netlink,
    number: usize,
    mut trial: Trial,
    mut news: mpsc::Receiver<(usize, News)>,
    state: watch::Sender<NetworkConfig>,
) {
    let start = Instant::now();
    while let Some((from, item)) = news.recv().await {
        // What others had to say before they were given up.
        if from != number {
            continue;
        }
        let old = state.borrow().clone();
        let interface = old.interface.as_str();
        match trial.take(item, start.elapsed()) {
            Turn::Extended => tracing::debug!(interface, "DHCP lease extended"),
            Turn::Ended(family, cause) => {
                tracing::info!(interface, ?family, cause, "this kind of address is looked for no longer");
            }
            turn => {
                let (was, is) = (old.addresses(), trial.config(old.took).addresses());
                match turn {
                    Turn::Lost(family) => tracing::warn!(interface, ?family, "the lease is lost"),
                    // The kernel drops routes and addresses with some kinds of loss; what is there already does no
                    // harm.
                    Turn::Back => {}
                    _ => tracing::info!(interface, ?was, ?is, "the network's settings changed"),
                }
                if let Err(error) = trial.apply(&netlink).await {
                    tracing::warn!(interface, %error, "new settings not applied");
                }
            }
        }
        let config = trial.config(old.took);
        // Watchers need not be there.
        state.send_if_modified(|known| {
            let changed = *known != config;
            *known = config;
            changed
        });
    }
}
