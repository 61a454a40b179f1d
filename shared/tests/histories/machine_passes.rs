//! Reconcile passes over machines of the model, and the boots they lead to.

use farrier_shared::contract::digest::Digest;
use farrier_shared::contract::name::HostKey;
use farrier_shared::lifecycle::boot_plan::InspectRequest;
use farrier_shared::lifecycle::digest_url::REUSE;
use farrier_shared::lifecycle::machine::{MACHINE_FINALIZER, MachineEffect};
use farrier_shared::lifecycle::{
    BootPlan, BootstrapRead, Clock, DigestRead, MachineDecision, MachineFacts, OwnerRead, PowerAction,
    PowerState, claim, decide_machine, host_view, mint,
};
use farrier_shared::resource::machine::MachinePhase;
use farrier_shared::resource::{Beskar7Machine, HostState, PhysicalHost};

use crate::event::{BmcState, Cut, Event};
use crate::passes::{Budget, Stopped};
use crate::world::{Stored, World, host_index};

impl World {
    /// What is known of the machine's checksum file.
    fn digest(&self, index: usize, machine: &Beskar7Machine) -> DigestRead {
        match self.fetched.get(&index) {
            Some((url, read, until))
                if Some(url) == machine.spec.target_image_digest_url.as_ref() && self.now < *until =>
            {
                read.clone()
            }
            _ => DigestRead::Unknown,
        }
    }

    pub(crate) fn machine_pass(&mut self, index: usize, cut: Cut, meanwhile: Option<&Event>) {
        let Some(machine) = self.machines[index].clone() else { return };
        let hosts = self.hosts.clone();
        let had = claim::claimed_host(&machine, &hosts).map(|h| host_index(&h.metadata.key()));
        let credentials = had.map_or(Stored::Absent, |i| self.stored(i));
        let signals = had.and_then(|i| self.signals.get(&i).cloned()).unwrap_or_default();
        let booted = had.and_then(|i| self.booted.get(&i).cloned());
        let progress = had.and_then(|i| self.progress.get(&i).cloned());
        let timings = self.timings.clone();
        let digest = self.digest(index, &machine);
        let facts = MachineFacts {
            machine: &machine,
            owner: OwnerRead::Standalone,
            bootstrap: BootstrapRead::Present,
            digest: &digest,
            hosts: &hosts,
            credentials: credentials.read(),
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
        self.check_pause(&machine, &hosts, &decision);
        self.notes.extend(decision.notes.iter().cloned());
        if let Some(event) = meanwhile {
            self.step(event);
        }
        let mut budget = Budget(cut);
        let version = credentials.version();
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

    /// A host that was paused when the pass began is left alone, and its machine does not fail over it.
    fn check_pause(&mut self, machine: &Beskar7Machine, hosts: &[PhysicalHost], decision: &MachineDecision) {
        let Some(host) = claim::claimed_host(machine, hosts).filter(|h| h.metadata.is_paused()) else {
            return;
        };
        let touches = |effect: &&MachineEffect| {
            matches!(
                effect,
                MachineEffect::Boot(_)
                    | MachineEffect::EnsurePoweredOn(_)
                    | MachineEffect::ClearBootOverride(_)
                    | MachineEffect::Power { .. }
                    | MachineEffect::Signal { .. }
            )
        };
        if let Some(effect) = decision.effects.iter().find(touches) {
            self.violations.push(format!("{} is paused: {effect:?}", host.metadata.name));
        }
        let failed = |phase: Option<MachinePhase>| phase == Some(MachinePhase::Failed);
        if failed(decision.status.phase) && !failed(machine.status.phase) {
            self.violations.push(format!("a machine failed while {} is paused", host.metadata.name));
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
                let pinned = current.status.target_image_digest;
                let claimed = claim::claimed_host(machine, hosts).is_some();
                if claimed && pinned.is_some() && pinned != decision.status.target_image_digest {
                    self.violations.push("a digest was pinned anew under a claim".to_owned());
                }
                current.status = decision.status.clone();
                self.note_machine(index);
            }
            MachineEffect::SetProviderId(id) => current.spec.provider_id = Some(id.clone()),
            MachineEffect::ResolveDigest(url) => {
                let fetched = match self.checksums[index] {
                    Some(byte) => (
                        DigestRead::Resolved { url: url.clone(), digest: Digest::from_bytes([byte; 32]) },
                        REUSE,
                    ),
                    None => {
                        let retry_in = self.timings.digest_backoff_first;
                        (DigestRead::Failed { message: "no answer".to_owned(), retry_in }, retry_in)
                    }
                };
                self.fetched.insert(index, (url.clone(), fetched.0, self.now + fetched.1));
            }
            MachineEffect::Claim(key) => {
                let host = host_index(key);
                if self.hosts[host].metadata.resource_version != hosts[host].metadata.resource_version {
                    return Err(Stopped);
                }
                let digest = machine.spec.target_image_digest.or(machine.status.target_image_digest);
                if digest.is_none() {
                    self.violations.push(format!("{key} was claimed for an image without a digest"));
                }
                if self.hosts[host].spec.consumer_ref.is_some() {
                    self.violations.push(format!("{key} was claimed twice"));
                }
                self.write_consumer(host, Some(machine));
            }
            MachineEffect::Boot(plan) => return self.boot(index, machine, plan, budget),
            MachineEffect::Signal { host, signal, .. } => self.put_signal(host_index(host), signal),
            MachineEffect::EnsurePoweredOn(key) => {
                self.power(key, PowerAction::On);
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
        // One that is let go keeps its state's name until its next pass, and with it where it was installed.
        if machine.is_some() {
            self.moved.remove(&host);
        }
        self.hosts[host].metadata.resource_version = self.version();
    }

    fn power(&mut self, host: &HostKey, action: PowerAction) {
        let index = host_index(host);
        // Paused after the pass was decided.
        let paused = self.hosts[index].metadata.is_paused();
        let bmc = &mut self.bmcs[index];
        if bmc.state == BmcState::Up && !paused {
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
        let ours = self.machines[index].is_some() && host_view::is_claimed_by(&fresh, machine);
        if !ours || fresh.metadata.is_paused() {
            return Err(Stopped);
        }
        let stored = self.stored(host);
        let entropy = self.entropy();
        let signals = self.signals.get(&host).cloned().unwrap_or_default();
        let running = plan.still_running(power).map(|run| mint::Running { run, signals: &signals });
        let ensured =
            mint::ensure(&fresh, machine, stored.read(), running, &entropy, self.now, &self.timings)
                .map_err(|_| Stopped)?;
        if let mint::Ensured::Write(new) = &ensured {
            self.put_credentials(host, new.clone(), stored.version())?;
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
