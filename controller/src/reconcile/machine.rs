//! One pass over a machine.

use farrier_shared::contract::HostKey;
use farrier_shared::lifecycle::machine::MACHINE_FINALIZER;
use farrier_shared::lifecycle::selector::Selector;
use farrier_shared::lifecycle::{
    BootstrapRead, CredentialsRead, HistoryEntry, MachineDecision, MachineEffect, MachineFacts, OwnerRead,
    claim, decide_machine, host_view,
};
use farrier_shared::resource::{Beskar7Machine, PhysicalHost, Secret};

use super::bmc::AskError;
use super::rooms::{Lane, Place};
use super::{Key, Next, PassError, Shell};
use crate::store::{Scope, StoreError, Term};

/// Claims tried in one pass before it starts anew later: each lost one means that somebody else has a host.
const CLAIM_ATTEMPTS: usize = 8;
/// Free hosts looked at for one claim.
const CANDIDATES: usize = 8;

impl Shell {
    pub(super) async fn machine_pass(&self, key: &HostKey, mut place: Place) -> Result<Next, PassError> {
        let Some(machine) = self.ctx.store.get::<Beskar7Machine>(key).await? else {
            self.memory.forget_machine(key);
            return Ok(Next::default());
        };
        let mut lost = 0;
        loop {
            let (hosts, decision) = {
                let _one_time = self.deciding.read().await;
                let hosts = self.hosts_for(&machine, lost).await?;
                let decision = self.decide(&machine, &hosts).await?;
                (hosts, decision)
            };
            if !boots(&decision) {
                self.memory.boot_over(&machine);
            } else if let Some(again) = self.memory.boot_waits(&machine) {
                return Ok(Next { again: Some(again), ..Next::default() });
            }
            match self.carry_out_machine(machine.clone(), &hosts, &decision, &mut place).await {
                Err(Halt::ClaimLost) if lost < CLAIM_ATTEMPTS => lost += 1,
                Err(Halt::ClaimLost) => {
                    return Ok(Next { again: Some(self.ctx.timings.soon), ..Next::default() });
                }
                Err(Halt::Failed(PassError::Bmc(error))) if boots(&decision) => {
                    return self.boot_failed(&machine, &hosts, &decision, &error).await;
                }
                Err(Halt::Failed(error @ PassError::Script(_))) => {
                    // Nothing but a change helps, and that wakes the machine.
                    self.tell_boot_failed(&machine, &hosts, &decision, &error.to_string()).await?;
                    return Ok(Next { again: Some(self.ctx.timings.healthy), ..Next::default() });
                }
                Err(Halt::Failed(error)) => return Err(error),
                Err(Halt::NoRoom(lane)) => return Ok(Next { room: Some(lane), ..Next::default() }),
                Ok(()) => return Ok(self.after(key, decision)),
            }
        }
    }

    /// The BMC did not boot the host: operators see why, the BMC is asked how it is, and the next try waits. The
    /// wait is kept here and not left to the queue's back-off, which the status written here would end at once.
    async fn boot_failed(
        &self,
        machine: &Beskar7Machine,
        hosts: &[PhysicalHost],
        decision: &MachineDecision,
        error: &AskError,
    ) -> Result<Next, PassError> {
        let again = self.memory.boot_failed(machine, &self.ctx.timings);
        let mut next = Next { again: Some(again), ..Next::default() };
        tracing::info!(machine = %machine.metadata.key(), retry_in = ?again, "the boot will be tried again");
        self.tell_boot_failed(machine, hosts, decision, &error.to_string()).await?;
        if let Some(host) = claim::claimed_host(machine, hosts) {
            next.wake.push(Key::Bmc(host.metadata.key()));
        }
        Ok(next)
    }

    /// Writes down why the host is not booted, unless that is known already.
    async fn tell_boot_failed(
        &self,
        machine: &Beskar7Machine,
        hosts: &[PhysicalHost],
        decision: &MachineDecision,
        why: &str,
    ) -> Result<(), StoreError> {
        tracing::warn!(machine = %machine.metadata.key(), error = why, "booting the host failed");
        let mut told = machine.clone();
        told.status = decision.after_failed_boot(&machine.status, self.ctx.clock.now(), why);
        if told.status == machine.status {
            return Ok(());
        }
        self.ctx.store.update(&told).await?;
        if let Some(host) = claim::claimed_host(machine, hosts) {
            self.tell(host, "BootFailed", why).await;
        }
        Ok(())
    }

    /// A log with a gap is no reason to hold a machine up.
    pub(super) async fn append_history(&self, host: &HostKey, entry: &HistoryEntry) {
        tracing::info!(%host, event = entry.event, reason = entry.reason, "host");
        if let Err(error) = self.ctx.store.append_history(host, entry).await {
            tracing::warn!(%host, %error, "the host's history is incomplete");
        }
    }

    fn after(&self, key: &HostKey, decision: MachineDecision) -> Next {
        let failed = decision.error.is_some();
        if let Some(error) = decision.error {
            tracing::warn!(machine = %key, error, "the machine cannot go on");
        }
        Next { again: Some(decision.requeue), failed, ..Next::default() }
    }

    /// The host the machine has, or else hosts it may claim. Whoever has lost a race looks elsewhere first than
    /// the others that lost it.
    async fn hosts_for(
        &self,
        machine: &Beskar7Machine,
        lost: usize,
    ) -> Result<Vec<PhysicalHost>, StoreError> {
        let (store, namespace) = (&self.ctx.store, &machine.metadata.namespace);
        let named = machine.spec.provider_id.as_ref().map(|id| id.host().clone());
        for key in [named, self.index.host_of(&machine.metadata.key())].into_iter().flatten() {
            if key.namespace == *namespace
                && let Some(host) = store.get::<PhysicalHost>(&key).await?
                && host_view::is_claimed_by(&host, machine)
            {
                return Ok(vec![host]);
            }
        }
        // What a pass read a moment ago may be newer here than its host's claim: a machine that was told that it has
        // no host would claim a second one. Only the store knows.
        let claimed = Term::ClaimedBy(&machine.metadata.name);
        let scope = Scope::Namespace { namespace: namespace.clone(), after: None };
        let mut claimed = store.find::<PhysicalHost>(claimed, scope, 1).await?;
        claimed.retain(|host| host_view::is_claimed_by(host, machine));
        if !claimed.is_empty() {
            return Ok(claimed);
        }
        let elsewhere = if lost == 0 { 0 } else { scatter(&machine.metadata.uid, lost) };
        // One that cannot be understood is found out by the decision.
        let selector = machine.spec.host_selector.as_ref().and_then(|s| Selector::parse(s).ok());
        let keys = match (
            &machine.spec.host_name,
            self.index.free(namespace, selector.as_ref(), elsewhere, CANDIDATES),
        ) {
            (_, None) => return store.list(Some(namespace)).await,
            (Some(name), Some(_)) => vec![HostKey::new(namespace.clone(), name.clone())],
            (None, Some(free)) => free,
        };
        let mut hosts = Vec::with_capacity(keys.len());
        for key in keys {
            hosts.extend(store.get(&key).await?);
        }
        Ok(hosts)
    }

    async fn decide(
        &self,
        machine: &Beskar7Machine,
        hosts: &[PhysicalHost],
    ) -> Result<MachineDecision, PassError> {
        let store = &self.ctx.store;
        let host = claim::claimed_host(machine, hosts);
        let (credentials, signals) = match host {
            Some(host) => {
                let key = host.metadata.key();
                (store.credentials(&key).await, store.signals(&key).await?)
            }
            None => (Ok(None), Vec::new()),
        };
        let bootstrap = match &machine.spec.bootstrap {
            None => BootstrapRead::Unnamed,
            Some(bootstrap) => {
                let key =
                    HostKey::new(machine.metadata.namespace.clone(), bootstrap.data_secret_name.clone());
                match store.get::<Secret>(&key).await {
                    Ok(Some(_)) => BootstrapRead::Present,
                    Ok(None) => BootstrapRead::Missing,
                    Err(_) => BootstrapRead::Unreadable,
                }
            }
        };
        let digest = self.memory.digest(machine);
        let held = credentials.as_ref().ok().and_then(|stored| stored.as_ref()).map(|stored| &stored.value);
        let booted = host.and_then(|host| self.memory.booted_run(host, machine, held));
        let progress = host.and_then(|host| self.memory.progress(host));
        let resumed = host.and_then(|host| self.resumed(host, machine.metadata.is_paused()));
        Ok(decide_machine(&MachineFacts {
            machine,
            owner: OwnerRead::Standalone,
            bootstrap,
            digest: &digest,
            hosts,
            credentials: match &credentials {
                Ok(None) => CredentialsRead::Absent,
                Ok(Some(stored)) => CredentialsRead::Present(&stored.value),
                Err(_) => CredentialsRead::Unreadable,
            },
            signals: &signals,
            booted_run: booted.as_deref(),
            clock: self.clock(progress.as_ref(), resumed),
        }))
    }

    async fn carry_out_machine(
        &self,
        mut machine: Beskar7Machine,
        hosts: &[PhysicalHost],
        decision: &MachineDecision,
        place: &mut Place,
    ) -> Result<(), Halt> {
        let store = &self.ctx.store;
        let name = machine.metadata.key();
        for note in &decision.notes {
            tracing::info!(machine = %name, "{note}");
        }
        for effect in &decision.effects {
            if let Some(lane) = lane_of(effect)
                && place.lane != lane
            {
                // Waiting for a BMC or a web server takes no room from passes that only decide.
                *place = self.rooms.enter(lane).ok_or(Halt::NoRoom(lane))?;
            }
            match effect {
                MachineEffect::AddFinalizer => {
                    machine.metadata.finalizers.push(MACHINE_FINALIZER.to_owned());
                    machine = store.update(&machine).await?;
                }
                MachineEffect::RemoveFinalizer => {
                    self.remove_user_data(&machine).await?;
                    machine.metadata.finalizers.retain(|f| f != MACHINE_FINALIZER);
                    match store.update(&machine).await {
                        Ok(_) | Err(StoreError::NotFound { .. }) => {}
                        Err(error) => return Err(error.into()),
                    }
                }
                MachineEffect::WriteStatus => {
                    machine.status = decision.status.clone();
                    machine = store.update(&machine).await?;
                }
                MachineEffect::SetProviderId(id) => {
                    machine.spec.provider_id = Some(id.clone());
                    machine = store.update(&machine).await?;
                }
                MachineEffect::ResolveDigest(url) => self.resolve_digest(&machine, url).await,
                MachineEffect::Claim(host) => self.claim(&machine, hosts, host).await?,
                MachineEffect::Boot(plan) => {
                    self.boot(&machine, plan).await?;
                    self.memory.boot_over(&machine);
                }
                MachineEffect::Signal { host, signal, best_effort } => {
                    let put = store.put_signal(host, signal).await;
                    tolerate(*best_effort, &name, "signal", put.map_err(PassError::from))?;
                }
                MachineEffect::EnsurePoweredOn(host) => {
                    tolerate(true, &name, "power recheck", self.ensure_powered_on(host).await)?;
                }
                MachineEffect::ClearBootOverride(host) => {
                    tolerate(
                        true,
                        &name,
                        "clearing the boot override",
                        self.clear_boot_override(host).await,
                    )?;
                }
                MachineEffect::Power { host, action } => {
                    if let Some(host) = hosts.iter().find(|h| h.metadata.key() == *host) {
                        self.try_power(host, *action).await;
                    }
                }
                MachineEffect::CutToken { host, credentials } => {
                    let stored = store.credentials(host).await?;
                    // Cut what was decided on, not what was minted since.
                    let same = stored.filter(|s| s.value.run == credentials.run);
                    if let Some(stored) = same {
                        store.put_credentials(host, credentials, Some(&stored.version)).await?;
                    }
                }
                MachineEffect::Release(host) => self.release(&machine, host).await?,
                MachineEffect::Record { host, entry } => self.append_history(host, entry).await,
            }
        }
        Ok(())
    }

    async fn claim(
        &self,
        machine: &Beskar7Machine,
        hosts: &[PhysicalHost],
        key: &HostKey,
    ) -> Result<(), Halt> {
        let Some(seen) = hosts.iter().find(|h| h.metadata.key() == *key) else {
            return Err(PassError::Other(format!("host {key} was chosen and is not listed")).into());
        };
        let mut host = seen.clone();
        host.spec.consumer_ref = Some(claim::reference_to(machine));
        match self.ctx.store.update(&host).await {
            Ok(host) => {
                tracing::info!(machine = %machine.metadata.key(), host = %key, "claimed");
                self.index.see(&host);
                Ok(())
            }
            Err(StoreError::Conflict { .. } | StoreError::NotFound { .. }) => Err(Halt::ClaimLost),
            Err(error) => Err(error.into()),
        }
    }
}

/// Where an effect that waits for somebody else's machine takes its place.
fn lane_of(effect: &MachineEffect) -> Option<Lane> {
    match effect {
        MachineEffect::Boot(_)
        | MachineEffect::Power { .. }
        | MachineEffect::EnsurePoweredOn(_)
        | MachineEffect::ClearBootOverride(_) => Some(Lane::Act),
        MachineEffect::ResolveDigest(_) => Some(Lane::Fetch),
        _ => None,
    }
}

/// Why a pass stops in the middle of its effects.
enum Halt {
    /// There is no room for the next effect; what is done stands, and the next pass goes on from there.
    NoRoom(Lane),
    /// Somebody else was faster; another host may be free.
    ClaimLost,
    Failed(PassError),
}

impl<E: Into<PassError>> From<E> for Halt {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

fn boots(decision: &MachineDecision) -> bool {
    decision.effects.iter().any(|effect| matches!(effect, MachineEffect::Boot(_)))
}

fn tolerate(
    best_effort: bool,
    machine: &HostKey,
    what: &str,
    done: Result<(), PassError>,
) -> Result<(), PassError> {
    match done {
        Err(error) if best_effort => {
            tracing::warn!(%machine, %error, "{what} failed; going on without");
            Ok(())
        }
        other => other,
    }
}

/// A number that differs between machines and between their tries.
fn scatter(uid: &str, tries: usize) -> usize {
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};
    let mut hasher = DefaultHasher::new();
    (uid, tries).hash(&mut hasher);
    usize::try_from(hasher.finish() >> 33).unwrap_or(0)
}
