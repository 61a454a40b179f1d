//! Keeps the network as leases, routers and links change, for as long as the run takes.

use tokio::sync::{mpsc, watch};

use super::bring_up::Trial;
use super::config::NetworkConfig;
use super::family::{Family, News};
use super::netlink::Netlink;

/// Applies all news of one interface.
pub(super) async fn keep(
    netlink: Netlink,
    number: usize,
    mut trial: Trial,
    mut news: mpsc::Receiver<(usize, News)>,
    state: watch::Sender<NetworkConfig>,
) {
    while let Some((from, item)) = news.recv().await {
        // What others had to say before they were given up.
        if from != number {
            continue;
        }
        take(&netlink, &mut trial, item).await;
        let took = state.borrow().took;
        let config = trial.config(took);
        // Watchers need not be there.
        state.send_if_modified(|old| {
            let changed = *old != config;
            *old = config;
            changed
        });
    }
}

async fn take(netlink: &Netlink, trial: &mut Trial, item: News) {
    let index = trial.index();
    match item {
        News::V4(plan, lease) => {
            trial.lease = lease;
            if trial.v4.as_ref() == Some(&plan) {
                tracing::debug!(address = %plan.address, "DHCP lease extended");
                return;
            }
            let old = trial.v4.replace(plan).map(|p| p.address);
            let new = trial.v4.as_ref().map(|p| p.address);
            tracing::info!(?old, ?new, "IPv4 settings changed");
            if old != new {
                netlink.clear4(index).await;
            }
        }
        News::V6(plan) => {
            let old = trial.v6.replace(plan);
            let new = trial.v6.as_ref();
            tracing::info!(old = ?old.as_ref().map(|p| p.all().collect::<Vec<_>>()),
                new = ?new.map(|p| p.all().collect::<Vec<_>>()), "IPv6 settings changed");
            let ours = |plan: Option<&super::Ipv6Plan>| plan.map(|p| (p.addresses.clone(), p.gateway));
            if ours(old.as_ref()) != ours(new) {
                netlink.clear6(index).await;
            }
        }
        News::Lost(family) => {
            tracing::warn!(?family, "the lease is lost");
            match family {
                Family::V4 => {
                    (trial.v4, trial.lease) = (None, None);
                    netlink.clear4(index).await;
                }
                Family::V6 => {
                    trial.v6 = None;
                    netlink.clear6(index).await;
                }
            }
            return;
        }
        News::Ended(family, cause) => {
            tracing::info!(?family, cause, "this kind of address is looked for no longer");
            return;
        }
        // The kernel drops routes and addresses with some kinds of loss; what is there already does no harm.
        News::LinkBack => {}
    }
    if let Err(error) = trial.apply(netlink).await {
        tracing::warn!(%error, "new settings not applied");
    }
}
