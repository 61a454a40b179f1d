//! One pass over a host.

use std::time::Duration;

use farrier_shared::contract::HostKey;
use farrier_shared::lifecycle::host_view::{self, HOST_FINALIZER};
use farrier_shared::lifecycle::{
    BmcObservation, ConsumerRead, CredentialsRead, HistoryEntry, HostDecision, HostEffect, HostFacts,
    decide_host,
};
use farrier_shared::resource::host::PhysicalHostStatus;
use farrier_shared::resource::{Beskar7Machine, HostState, PhysicalHost};

use super::{Key, Next, PassError, Shell};
use crate::callback::logs;
use crate::store::StoreError;

impl Shell {
    pub(super) async fn host_pass(&self, key: &HostKey) -> Result<Next, PassError> {
        let _one_time = self.deciding.read().await;
        let store = &self.ctx.store;
        let Some(host) = store.get::<PhysicalHost>(key).await? else {
            self.memory.forget_host(key);
            self.index.gone(key);
            self.ctx.progress.clear(key);
            return Ok(Next::default());
        };
        self.index.see(&host);
        let signals = store.signals(key).await?;
        let credentials = store.credentials(key).await;
        let consumer_key = host_view::consumer_key(&host);
        let machine = match &consumer_key {
            Some(key) => store.get::<Beskar7Machine>(key).await.map(Some),
            None => Ok(None),
        };
        let consumer = match &machine {
            Ok(Some(Some(machine))) => ConsumerRead::Found(machine),
            Ok(Some(None)) => ConsumerRead::Missing,
            Ok(None) | Err(_) => ConsumerRead::Unknown,
        };
        let (observed, bmc_failures) = self.memory.observation(&host);
        let progress = self.memory.progress(&host);
        let consumer_paused = matches!(consumer, ConsumerRead::Found(m) if m.metadata.is_paused());
        let resumed = self.resumed(&host, consumer_paused);
        let decision = decide_host(&HostFacts {
            host: &host,
            consumer,
            credentials: match &credentials {
                Ok(None) => CredentialsRead::Absent,
                Ok(Some(stored)) => CredentialsRead::Present(&stored.value),
                Err(_) => CredentialsRead::Unreadable,
            },
            signals: &signals,
            bmc: &observed,
            bmc_failures,
            callback_url: self.ctx.url_base.as_str(),
            clock: self.clock(progress.as_ref(), resumed),
        });
        let version = credentials.ok().flatten().map(|stored| stored.version);
        let written = self.carry_out_host(&host, &decision, version.as_deref()).await?;
        self.memory.observation_used(&host, &observed);
        let mut next = next(key, &host, &decision, &observed, consumer_key, written);
        if written && became_free(&host.status, &decision.status) {
            next.wake.extend(self.who_wants(key).await?);
            next.wake.push(Key::Free(key.namespace.clone()));
        }
        if next.again >= Some(self.ctx.timings.healthy) {
            // Every change wakes the host, and so does each look at its BMC that tells something new. Its own timer is
            // for what nobody thought of.
            next.again = Some(self.ctx.timings.settled);
        }
        if self.memory.reached_otherwise(&host) {
            // Somebody corrected the address, perhaps: that must not wait for the next look.
            next.wake.push(Key::Bmc(key.clone()));
        }
        Ok(next)
    }

    /// When the host last ceased to stand still by the operator's wish.
    pub(super) fn resumed(&self, host: &PhysicalHost, consumer_paused: bool) -> Option<Duration> {
        let paused = host.metadata.is_paused() || consumer_paused;
        self.memory.resumed(host, paused, self.ctx.clock.monotonic())
    }

    /// Carries the decision out; whether the status was written.
    async fn carry_out_host(
        &self,
        host: &PhysicalHost,
        decision: &HostDecision,
        credentials_version: Option<&str>,
    ) -> Result<bool, PassError> {
        let (store, key) = (&self.ctx.store, host.metadata.key());
        let mut written = false;
        for note in &decision.notes {
            tracing::info!("{note}");
        }
        let entries: Vec<_> = decision.effects.iter().filter_map(recorded).cloned().collect();
        let writes = decision.effects.contains(&HostEffect::WriteStatus);
        for effect in &decision.effects {
            match effect {
                HostEffect::AddFinalizer => {
                    let mut host = host.clone();
                    host.metadata.finalizers.push(HOST_FINALIZER.to_owned());
                    store.update(&host).await?;
                }
                HostEffect::RemoveFinalizer => {
                    self.remove_logs(&key).await;
                    let mut host = host.clone();
                    host.metadata.finalizers.retain(|f| f != HOST_FINALIZER);
                    store.update(&host).await?;
                }
                HostEffect::WriteStatus => {
                    let mut host = host.clone();
                    host.status = decision.status.clone();
                    self.index.see(&store.update_host(&host, entries.clone()).await?);
                    written = true;
                }
                HostEffect::RemoveSignal(signal) => store.remove_signal(&key, signal).await?,
                HostEffect::RenewToken(renewed) => {
                    match store.put_credentials(&key, renewed, credentials_version).await {
                        // Somebody minted or cut since: theirs stands.
                        Ok(_) | Err(StoreError::Conflict { .. }) => {}
                        Err(error) => return Err(error.into()),
                    }
                }
                HostEffect::ForgetBoot => {
                    self.memory.forget_boot(host);
                    self.ctx.progress.clear(&key);
                }
                HostEffect::Record(entry) => {
                    tracing::info!(
                        host = %key, from = entry.from, to = entry.to, event = entry.event, reason = entry.reason,
                        run = entry.run, "host"
                    );
                    // A change of status took its entries along.
                    if !writes && let Err(error) = store.append_history(&key, entry).await {
                        tracing::warn!(host = %key, %error, "the host's history is incomplete");
                    }
                }
            }
        }
        Ok(written)
    }
}

impl Shell {
    /// What agents have sent of a host that goes would be nobody's. It goes before the host does, so that a controller
    /// that is killed in between does it again.
    async fn remove_logs(&self, key: &HostKey) {
        let (dir, host) = (self.ctx.logs_dir.clone(), key.clone());
        let removed = tokio::task::spawn_blocking(move || logs::remove(&dir, &host)).await;
        if let Err(error) = removed.map_err(std::io::Error::other).flatten() {
            tracing::warn!(host = %key, %error, "the logs of the host's agents stay where they are");
        }
    }
}

fn recorded(effect: &HostEffect) -> Option<&HistoryEntry> {
    match effect {
        HostEffect::Record(entry) => Some(entry),
        _ => None,
    }
}

/// Whom the pass concerns besides the host.
fn next(
    key: &HostKey,
    host: &PhysicalHost,
    decision: &HostDecision,
    observed: &BmcObservation,
    consumer: Option<HostKey>,
    written: bool,
) -> Next {
    let mut next = Next { again: Some(decision.requeue), ..Next::default() };
    let settled = !host.metadata.is_paused()
        && host.metadata.deletion_timestamp.is_none()
        && host.metadata.finalizers.iter().any(|f| f == HOST_FINALIZER);
    if settled {
        let bmc = Key::Bmc(key.clone());
        if decision.ask_bmc_now && *observed == BmcObservation::NotAsked {
            next.wake.push(bmc);
        } else {
            next.ensure.push(bmc);
        }
    }
    if written && concerns_machine(&host.status, &decision.status) {
        next.wake.extend(consumer.map(Key::Machine));
    }
    next
}

fn became_free(old: &PhysicalHostStatus, new: &PhysicalHostStatus) -> bool {
    new.state == HostState::Available && old.state != HostState::Available
}

/// Whether a machine would decide differently. The mirror of its own credentials tells it nothing new.
fn concerns_machine(old: &PhysicalHostStatus, new: &PhysicalHostStatus) -> bool {
    let without_mirror =
        |status: &PhysicalHostStatus| PhysicalHostStatus { bootstrap: None, ..status.clone() };
    without_mirror(old) != without_mirror(new)
}
