//! Reconcile passes over the model: gather, decide, carry out, stop where told to.

use farrier_shared::contract::name::HostKey;
use farrier_shared::lifecycle::boot_plan::InspectRequest;
use farrier_shared::lifecycle::host::HostEffect;
use farrier_shared::lifecycle::machine::{MACHINE_FINALIZER, MachineEffect};
use farrier_shared::lifecycle::{
    BmcFacts, BmcObservation, BootPlan, BootstrapRead, Clock, ConsumerRead, Credentials, CredentialsRead,
    DigestRead, HostDecision, HostFacts, MachineDecision, MachineFacts, OwnerRead, PowerAction, PowerState,
    Signal, claim, decide_host, decide_machine, host_view, mint,
};
use farrier_shared::resource::machine::MachinePhase;
use farrier_shared::resource::{Beskar7Machine, HostState, PhysicalHost};

use crate::event::{BmcState, Cut, Event};
use crate::world::{World, host_index};

/// The pass ended early: a conflict, a failing BMC, or the cut.
pub(crate) struct Stopped;

/// Counts effects down to the cut.
pub(crate) struct Budget(Cut);

impl Budget {
    fn spend(&mut self) -> Result<(), Stopped> {
        match &mut self.0 {
            None => Ok(()),
            Some(0) => Err(Stopped),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
        }
    }

    fn cut(&self) -> bool {
        self.0 == Some(0)
    }
}

fn read(credentials: Option<&(Credentials, u64)>) -> CredentialsRead<'_> {
    credentials.map_or(CredentialsRead::Absent, |(c, _)| CredentialsRead::Present(c))
}

impl World {
    pub(crate) fn host_pass(&mut self, index: usize, ask_bmc: bool, cut: Cut, meanwhile: Option<&Event>) {
        let host = self.hosts[index].clone();
        let credentials = self.credentials.get(&index).cloned();
        let signals = self.signals.get(&index).cloned().unwrap_or_default();
        let progress = self.progress.get(&index).cloned();
        let consumer = host_view::consumer_key(&host)
            .and_then(|key| self.machines.iter().flatten().find(|m| m.metadata.key() == key).cloned());
        let bmc = if ask_bmc { self.observe(index) } else { BmcObservation::NotAsked };
        let timings = self.timings.clone();
        let facts = HostFacts {
            host: &host,
            consumer: consumer.as_ref().map_or(ConsumerRead::Missing, ConsumerRead::Found),
            credentials: read(credentials.as_ref()),
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
        let version = credentials.map(|(_, v)| v);
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
        if current != expected {
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

    pub(crate) fn machine_pass(&mut self, index: usize, cut: Cut, meanwhile: Option<&Event>) {
        let Some(machine) = self.machines[index].clone() else { return };
        let hosts = self.hosts.clone();
        let had = claim::claimed_host(&machine, &hosts).map(|h| host_index(&h.metadata.key()));
        let credentials = had.and_then(|i| self.credentials.get(&i).cloned());
        let signals = had.and_then(|i| self.signals.get(&i).cloned()).unwrap_or_default();
        let booted = had.and_then(|i| self.booted.get(&i).cloned());
        let progress = had.and_then(|i| self.progress.get(&i).cloned());
        let timings = self.timings.clone();
        let facts = MachineFacts {
            machine: &machine,
            owner: OwnerRead::Standalone,
            bootstrap: BootstrapRead::Present,
            digest: &DigestRead::Unknown,
            hosts: &hosts,
            credentials: read(credentials.as_ref()),
            signals: &signals,
            booted_run: booted.as_deref(),
            clock: Clock {
                now: self.now,
                listening_since: self.listening_since,
                progress: progress.as_ref(),
                timings: &timings,
            },
        };
        let decision = decide_machine(&facts);
        self.notes.extend(decision.notes.iter().cloned());
        if let Some(event) = meanwhile {
            self.step(event);
        }
        let mut budget = Budget(cut);
        let version = credentials.map(|(_, v)| v);
        for effect in &decision.effects {
            if self.machine_effect(index, &machine, &hosts, &decision, effect, version, &mut budget).is_err()
            {
                break;
            }
        }
        if budget.cut() {
            self.restart();
        }
    }

    #[expect(clippy::too_many_arguments, reason = "everything one effect of one pass may refer to")]
    fn machine_effect(
        &mut self,
        index: usize,
        machine: &Beskar7Machine,
        hosts: &[PhysicalHost],
        decision: &MachineDecision,
        effect: &MachineEffect,
        credentials_version: Option<u64>,
        budget: &mut Budget,
    ) -> Result<(), Stopped> {
        // The machine object itself: gone or replaced since it was read means the pass is over.
        let Some(current) = &mut self.machines[index] else { return Err(Stopped) };
        if current.metadata.uid != machine.metadata.uid {
            return Err(Stopped);
        }
        if !matches!(effect, MachineEffect::Boot(_)) {
            budget.spend()?;
        }
        match effect {
            MachineEffect::AddFinalizer => current.metadata.finalizers.push(MACHINE_FINALIZER.to_owned()),
            MachineEffect::RemoveFinalizer => self.machines[index] = None,
            MachineEffect::WriteStatus => {
                current.status = decision.status.clone();
                self.note_machine(index);
            }
            MachineEffect::SetProviderId(id) => current.spec.provider_id = Some(id.clone()),
            MachineEffect::ResolveDigest(_) => {}
            MachineEffect::Claim(key) => {
                let host = host_index(key);
                if self.hosts[host].metadata.resource_version != hosts[host].metadata.resource_version {
                    return Err(Stopped);
                }
                if self.hosts[host].spec.consumer_ref.is_some() {
                    self.violations.push(format!("{key} was claimed twice"));
                }
                self.write_consumer(host, Some(machine));
            }
            MachineEffect::Boot(plan) => return self.boot(index, machine, plan, budget),
            MachineEffect::Signal { host, signal, .. } => self.put_signal(host_index(host), signal),
            MachineEffect::EnsurePoweredOn(key) => {
                let bmc = &mut self.bmcs[host_index(key)];
                if bmc.state == BmcState::Up {
                    bmc.power = PowerState::On;
                }
            }
            MachineEffect::ClearBootOverride(_) | MachineEffect::Record { .. } => {}
            MachineEffect::Power { host, action } => self.power(host, *action),
            MachineEffect::CutToken { host, credentials } => {
                self.put_credentials(host_index(host), (**credentials).clone(), credentials_version)?;
            }
            MachineEffect::Release(key) => {
                let host = host_index(key);
                if host_view::is_claimed_by(&self.hosts[host], machine) {
                    if self.hosts[host].metadata.resource_version != hosts[host].metadata.resource_version {
                        return Err(Stopped);
                    }
                    self.write_consumer(host, None);
                    self.booted.remove(&host);
                }
            }
        }
        Ok(())
    }

    fn write_consumer(&mut self, host: usize, machine: Option<&Beskar7Machine>) {
        self.hosts[host].spec.consumer_ref = machine.map(claim::reference_to);
        self.hosts[host].metadata.resource_version = self.version();
    }

    fn power(&mut self, host: &HostKey, action: PowerAction) {
        let bmc = &mut self.bmcs[host_index(host)];
        if bmc.state == BmcState::Up {
            bmc.power = match action {
                PowerAction::On | PowerAction::ForceRestart => PowerState::On,
                PowerAction::GracefulShutdown | PowerAction::ForceOff => PowerState::Off,
            };
        }
    }

    /// A machine that fails takes its host's run with it.
    fn note_machine(&mut self, index: usize) {
        let Some(machine) = &self.machines[index] else { return };
        if machine.status.phase != Some(MachinePhase::Failed) {
            return;
        }
        let Some(host) = claim::claimed_host(machine, &self.hosts) else { return };
        if let Some(run) = host.status.run.clone() {
            if host.status.state == HostState::Ready {
                self.violations.push(format!("a machine failed over the Ready run {run}"));
            }
            self.failed.insert(run);
        }
    }

    fn boot(
        &mut self,
        index: usize,
        machine: &Beskar7Machine,
        plan: &BootPlan,
        budget: &mut Budget,
    ) -> Result<(), Stopped> {
        let host = host_index(&plan.host);
        // Set the boot source, then read the power.
        for _ in 0..2 {
            budget.spend()?;
            if self.bmcs[host].state != BmcState::Up {
                return Err(Stopped);
            }
        }
        let power = self.bmcs[host].power;
        budget.spend()?;
        let fresh = self.hosts[host].clone();
        if self.machines[index].is_none() || !host_view::is_claimed_by(&fresh, machine) {
            return Err(Stopped);
        }
        let stored = self.credentials.get(&host).cloned();
        let entropy = self.entropy();
        let signals = self.signals.get(&host).cloned().unwrap_or_default();
        let running = plan.still_running(power).map(|run| mint::Running { run, signals: &signals });
        let ensured =
            mint::ensure(&fresh, machine, read(stored.as_ref()), running, &entropy, self.now, &self.timings)
                .map_err(|_| Stopped)?;
        if let mint::Ensured::Write(new) = &ensured {
            self.put_credentials(host, new.clone(), stored.map(|(_, v)| v))?;
        }
        let credentials = ensured.credentials().clone();
        budget.spend()?;
        if let Some(action) = plan.power(&credentials, power) {
            self.power(&plan.host, action);
        }
        self.booted.insert(host, credentials.run.clone());
        budget.spend()?;
        let fresh = self.hosts[host].clone();
        match plan.request(&fresh, machine, &credentials) {
            InspectRequest::Write(signal) => self.put_signal(host, &signal),
            InspectRequest::NoLongerApplies => {}
            InspectRequest::NotOurs => return Err(Stopped),
        }
        Ok(())
    }
}
