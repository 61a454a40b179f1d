//! Reconcile passes over hosts of the model: gather, decide, carry out, stop where told to.

use farrier_shared::lifecycle::host::HostEffect;
use farrier_shared::lifecycle::{
    BmcFacts, BmcObservation, Clock, ConsumerRead, Credentials, HostDecision, HostFacts, Signal, decide_host,
    host_view,
};
use farrier_shared::resource::{HostState, PhysicalHost};

use crate::event::{Cut, Event};
use crate::world::World;

/// The pass ended early: a conflict, a failing BMC, or the cut.
pub(crate) struct Stopped;

/// Counts effects down to the cut.
pub(crate) struct Budget(pub(crate) Cut);

impl Budget {
    pub(crate) fn spend(&mut self) -> Result<(), Stopped> {
        match &mut self.0 {
            None => Ok(()),
            Some(0) => Err(Stopped),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
        }
    }

    pub(crate) fn cut(&self) -> bool {
        self.0 == Some(0)
    }
}

impl World {
    pub(crate) fn host_pass(&mut self, index: usize, ask_bmc: bool, cut: Cut, meanwhile: Option<&Event>) {
        let host = self.hosts[index].clone();
        let credentials = self.stored(index);
        let signals = self.signals.get(&index).cloned().unwrap_or_default();
        let progress = self.progress.get(&index).cloned();
        let consumer = host_view::consumer_key(&host)
            .and_then(|key| self.machines.iter().flatten().find(|m| m.metadata.key() == key).cloned());
        let bmc = if ask_bmc { self.observe(index) } else { BmcObservation::NotAsked };
        let timings = self.timings.clone();
        let facts = HostFacts {
            host: &host,
            consumer: consumer.as_ref().map_or(ConsumerRead::Missing, ConsumerRead::Found),
            credentials: credentials.read(),
            signals: &signals,
            bmc: &bmc,
            bmc_failures: self.bmc_failures[index],
            callback_url: "https://controller.example:8082",
            clock: Clock {
                now: self.now,
                listening_since: self.listening_since,
                progress: progress.as_ref(),
                timings: &timings,
            },
        };
        let decision = decide_host(&facts);
        self.check_requeue(&facts, &decision);
        self.notes.extend(decision.notes.iter().cloned());
        if let Some(event) = meanwhile {
            self.step(event);
        }
        let mut budget = Budget(cut);
        let version = credentials.version();
        for effect in &decision.effects {
            if self.host_effect(index, &host, &decision, effect, version, &mut budget).is_err() {
                break;
            }
        }
        if budget.cut() {
            self.restart();
        }
    }

    fn observe(&mut self, index: usize) -> BmcObservation {
        let bmc = &self.bmcs[index];
        match bmc.state.fault() {
            Some(fault) => {
                self.bmc_failures[index] += 1;
                fault
            }
            None => {
                self.bmc_failures[index] = 0;
                BmcObservation::Up(BmcFacts { power: Some(bmc.power), ..BmcFacts::default() })
            }
        }
    }

    /// A pass never sleeps past the deadline of the run it looked at.
    fn check_requeue(&mut self, facts: &HostFacts<'_>, decision: &HostDecision) {
        let paused = facts.host.metadata.is_paused();
        let runs = matches!(decision.status.state, HostState::Inspecting | HostState::Deploying);
        if runs && !paused && decision.requeue > self.timings.healthy {
            self.violations.push(format!("a host with a run sleeps {:?}", decision.requeue));
        }
    }

    fn host_effect(
        &mut self,
        index: usize,
        read: &PhysicalHost,
        decision: &HostDecision,
        effect: &HostEffect,
        credentials_version: Option<u64>,
        budget: &mut Budget,
    ) -> Result<(), Stopped> {
        budget.spend()?;
        match effect {
            HostEffect::AddFinalizer => {
                let finalizer = host_view::HOST_FINALIZER.to_owned();
                self.update_host(index, read, |host| host.metadata.finalizers.push(finalizer))
            }
            HostEffect::WriteStatus => {
                let status = decision.status.clone();
                self.update_host(index, read, |host| host.status = status)?;
                self.note_run(index);
                Ok(())
            }
            HostEffect::RemoveSignal(signal) => {
                self.signals.entry(index).or_default().retain(|s| s != signal);
                Ok(())
            }
            HostEffect::RenewToken(new) => self.put_credentials(index, (**new).clone(), credentials_version),
            HostEffect::ForgetBoot => {
                self.booted.remove(&index);
                Ok(())
            }
            HostEffect::Record(entry) => {
                self.history.push(entry.clone());
                Ok(())
            }
            HostEffect::RemoveFinalizer => Ok(()),
        }
    }

    /// Keeps the books on failed runs, and notices one that comes back to life.
    fn note_run(&mut self, index: usize) {
        let host = self.hosts[index].clone();
        let Some(run) = host.status.run.clone() else { return };
        if host_view::run_failed(&host) {
            self.failed.insert(run);
        } else if host.status.state == HostState::Ready && self.failed.contains(&run) {
            self.violations.push(format!("failed run {run} became Ready"));
        }
    }

    fn update_host(
        &mut self,
        index: usize,
        read: &PhysicalHost,
        change: impl FnOnce(&mut PhysicalHost),
    ) -> Result<(), Stopped> {
        if self.hosts[index].metadata.resource_version != read.metadata.resource_version {
            return Err(Stopped);
        }
        change(&mut self.hosts[index]);
        self.hosts[index].metadata.resource_version = self.version();
        Ok(())
    }

    pub(crate) fn put_credentials(
        &mut self,
        index: usize,
        new: Credentials,
        expected: Option<u64>,
    ) -> Result<(), Stopped> {
        let current = self.credentials.get(&index).map(|(_, v)| *v);
        if current != expected || self.unreadable.contains(&index) {
            return Err(Stopped);
        }
        if let Some((old, _)) = self.credentials.get(&index) {
            self.old_nonces.push(old.nonce.expose().to_owned());
        }
        self.secrets.insert(new.token.expose().to_owned());
        self.secrets.insert(new.nonce.expose().to_owned());
        let version = self.version().parse().unwrap();
        self.credentials.insert(index, (new, version));
        Ok(())
    }

    pub(crate) fn put_signal(&mut self, index: usize, signal: &Signal) {
        let waiting = self.signals.entry(index).or_default();
        waiting.retain(|s| s.key != signal.key);
        waiting.push(signal.clone());
        self.seen_signals.push(signal.clone());
    }
}
