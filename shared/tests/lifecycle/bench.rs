//! One host, one machine and what belongs to them, with passes that carry the decisions out.

use std::time::Duration;

use farrier_shared::contract::time::Time;
use farrier_shared::lifecycle::boot_plan::InspectRequest;
use farrier_shared::lifecycle::mint::{self, Ensured, Entropy};
use farrier_shared::lifecycle::{
    BmcFacts, BmcObservation, BootstrapRead, Clock, ConsumerRead, Credentials, CredentialsRead, DigestRead,
    HostDecision, HostEffect, HostFacts, MachineDecision, MachineEffect, MachineFacts, OwnerRead,
    PowerAction, PowerState, Progress, Signal, SignalKey, Timings, claim, decide_host, decide_machine,
    host_view, verdict,
};
use farrier_shared::resource::condition::{self, Condition, Truth};
use farrier_shared::resource::metadata::PAUSED;
use farrier_shared::resource::{Beskar7Machine, HostState, PhysicalHost};

use crate::objects::{host_named, machine_named};

/// How the store answers for the credentials.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Store {
    Answers,
    Silent,
}

pub(crate) struct Bench {
    pub(crate) host: PhysicalHost,
    pub(crate) machine: Beskar7Machine,
    pub(crate) credentials: Option<Credentials>,
    pub(crate) store: Store,
    pub(crate) signals: Vec<Signal>,
    pub(crate) progress: Option<Progress>,
    pub(crate) booted: Option<String>,
    pub(crate) bootstrap: BootstrapRead,
    pub(crate) digest: DigestRead,
    pub(crate) bmc_failures: u32,
    pub(crate) power: PowerState,
    pub(crate) actions: Vec<PowerAction>,
    pub(crate) now: Time,
    /// Since when callbacks are taken and acted on.
    pub(crate) listening_since: Time,
    pub(crate) timings: Timings,
    mints: u8,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self {
            host: host_named("host-01"),
            machine: machine_named("machine-01"),
            credentials: None,
            store: Store::Answers,
            signals: Vec::new(),
            progress: None,
            booted: None,
            bootstrap: BootstrapRead::Present,
            digest: DigestRead::Unknown,
            bmc_failures: 0,
            power: PowerState::Off,
            actions: Vec::new(),
            now: Time::from_unix(1_700_000_000),
            listening_since: Time::from_unix(0),
            timings: Timings::default(),
            mints: 0,
        }
    }

    /// A host in this state, claimed and with credentials where the state implies it.
    pub(crate) fn at(state: HostState) -> Self {
        let mut bench = Self::new();
        bench.pass();
        if state == HostState::New {
            bench.host.status = Default::default();
            return bench;
        }
        if state == HostState::Available {
            return bench;
        }
        bench.host.spec.consumer_ref = Some(claim::reference_to(&bench.machine));
        bench.pass();
        bench.mint();
        bench.pass();
        if state == HostState::InUse {
            return bench;
        }
        if state == HostState::Error {
            bench.observe(&down());
            return bench;
        }
        bench.sign(SignalKey::InspectionRequest, "inspect");
        bench.pass();
        if state == HostState::Inspecting {
            return bench;
        }
        bench.report(r#"{"cpus":[{"cores":16}]}"#);
        bench.pass();
        bench.sign(SignalKey::InspectionRequest, "inspect-complete");
        bench.pass();
        if state == HostState::Deploying {
            return bench;
        }
        bench.sign(SignalKey::Provisioned, "provisioned");
        bench.pass();
        bench.pass();
        assert_eq!(bench.host.status.state, HostState::Ready);
        bench
    }

    /// A claimed host whose run has failed by itself.
    pub(crate) fn run_failed() -> Self {
        let mut bench = Self::at(HostState::Deploying);
        bench.sign(SignalKey::ProvisionFailed, "inspector reported deploy failure: no space");
        bench.pass();
        assert_eq!(bench.state(), HostState::Error);
        bench
    }

    pub(crate) fn wait(&mut self, seconds: u64) {
        self.now = self.now + Duration::from_secs(seconds);
    }

    pub(crate) fn pause_host(&mut self, paused: bool) {
        let annotations = &mut self.host.metadata.annotations;
        if paused {
            annotations.insert(PAUSED.to_owned(), String::new());
        } else {
            annotations.remove(PAUSED);
        }
    }

    pub(crate) fn state(&self) -> HostState {
        self.host.status.state
    }

    pub(crate) fn read(&self) -> CredentialsRead<'_> {
        match (self.store, &self.credentials) {
            (Store::Silent, _) => CredentialsRead::Unreadable,
            (Store::Answers, None) => CredentialsRead::Absent,
            (Store::Answers, Some(c)) => CredentialsRead::Present(c),
        }
    }

    fn clock(&self) -> Clock<'_> {
        Clock {
            now: self.now,
            listening_since: self.listening_since,
            progress: self.progress.as_ref(),
            timings: &self.timings,
        }
    }

    pub(crate) fn entropy(&mut self) -> Entropy {
        self.mints += 1;
        Entropy { token: [self.mints; 32], nonce: [0x80 | self.mints; 32], run: [self.mints; 8] }
    }

    /// Credentials of a new run.
    pub(crate) fn mint(&mut self) {
        let entropy = self.entropy();
        let read = CredentialsRead::Absent;
        let ensured =
            mint::ensure(&self.host, &self.machine, read, None, &entropy, self.now, &self.timings).unwrap();
        self.credentials = Some(ensured.credentials().clone());
    }

    /// What `ensure` says now, for a host on which `running` may run.
    pub(crate) fn ensure(&mut self, running: Option<&str>) -> Result<Ensured, mint::EnsureError> {
        let entropy = self.entropy();
        let running = running.map(|run| mint::Running { run, signals: &self.signals });
        mint::ensure(&self.host, &self.machine, self.read(), running, &entropy, self.now, &self.timings)
    }

    pub(crate) fn signed(&self, key: SignalKey, value: &str, report: Option<&str>) -> Signal {
        let credentials = self.credentials.as_ref().unwrap();
        verdict::sign(&self.host, credentials, key, value, report.map(str::to_owned))
    }

    pub(crate) fn put(&mut self, signal: Signal) {
        self.signals.retain(|s| s.key != signal.key);
        self.signals.push(signal);
    }

    pub(crate) fn sign(&mut self, key: SignalKey, value: &str) {
        self.put(self.signed(key, value, None));
    }

    pub(crate) fn report(&mut self, text: &str) {
        self.put(self.signed(SignalKey::InspectionResult, "host-01-inspection-result", Some(text)));
    }

    pub(crate) fn decide(&self, bmc: &BmcObservation) -> HostDecision {
        let claimed = host_view::is_claimed_by(&self.host, &self.machine);
        decide_host(&HostFacts {
            host: &self.host,
            consumer: if claimed { ConsumerRead::Found(&self.machine) } else { ConsumerRead::Unknown },
            credentials: self.read(),
            signals: &self.signals,
            bmc,
            bmc_failures: self.bmc_failures,
            callback_url: "https://controller.example:8082",
            clock: self.clock(),
        })
    }

    /// A whole pass over the host with this observation.
    pub(crate) fn observe(&mut self, bmc: &BmcObservation) -> HostDecision {
        let decision = self.decide(bmc);
        self.carry_out(&decision);
        decision
    }

    pub(crate) fn carry_out(&mut self, decision: &HostDecision) {
        for effect in &decision.effects {
            match effect {
                HostEffect::WriteStatus => self.host.status = decision.status.clone(),
                HostEffect::RemoveSignal(signal) => self.signals.retain(|s| s != signal),
                HostEffect::RenewToken(new) => self.credentials = Some((**new).clone()),
                HostEffect::ForgetBoot => self.booted = None,
                HostEffect::AddFinalizer => {
                    self.host.metadata.finalizers.push(host_view::HOST_FINALIZER.to_owned());
                }
                HostEffect::RemoveFinalizer => self.host.metadata.finalizers.clear(),
                HostEffect::Record(_) => {}
            }
        }
    }

    /// A whole pass over the host with a healthy BMC.
    pub(crate) fn pass(&mut self) -> HostDecision {
        self.observe(&BmcObservation::Up(BmcFacts { power: Some(self.power), ..BmcFacts::default() }))
    }

    /// What the machine's pass says now.
    pub(crate) fn decide_machine(&self) -> MachineDecision {
        self.decide_machine_among(std::slice::from_ref(&self.host), OwnerRead::Standalone)
    }

    pub(crate) fn decide_machine_among(
        &self,
        hosts: &[PhysicalHost],
        owner: OwnerRead<'_>,
    ) -> MachineDecision {
        decide_machine(&MachineFacts {
            machine: &self.machine,
            owner,
            bootstrap: self.bootstrap,
            digest: &self.digest,
            hosts,
            credentials: self.read(),
            signals: &self.signals,
            booted_run: self.booted.as_deref(),
            clock: self.clock(),
        })
    }

    /// A whole pass over the machine, with a healthy BMC.
    pub(crate) fn machine_pass(&mut self) -> MachineDecision {
        let decision = self.decide_machine();
        for effect in decision.effects.clone() {
            match effect {
                MachineEffect::WriteStatus => self.machine.status = decision.status.clone(),
                MachineEffect::SetProviderId(id) => self.machine.spec.provider_id = Some(id),
                MachineEffect::Claim(_) => {
                    self.host.spec.consumer_ref = Some(claim::reference_to(&self.machine));
                }
                MachineEffect::Boot(plan) => {
                    let running = plan.still_running(self.power).map(str::to_owned);
                    let ensured = self.ensure(running.as_deref()).unwrap();
                    let credentials = ensured.credentials().clone();
                    self.credentials = Some(credentials.clone());
                    if let Some(action) = plan.power(&credentials, self.power) {
                        self.actions.push(action);
                        self.power = PowerState::On;
                    }
                    self.booted = Some(credentials.run.clone());
                    match plan.request(&self.host, &self.machine, &credentials) {
                        InspectRequest::Write(signal) => self.put(signal),
                        other => panic!("{other:?}"),
                    }
                }
                MachineEffect::Signal { signal, .. } => self.put(signal),
                MachineEffect::Power { action, .. } => self.actions.push(action),
                MachineEffect::EnsurePoweredOn(_) => self.power = PowerState::On,
                MachineEffect::CutToken { credentials, .. } => self.credentials = Some(*credentials),
                MachineEffect::Release(_) => self.host.spec.consumer_ref = None,
                MachineEffect::RemoveFinalizer => self.machine.metadata.finalizers.clear(),
                MachineEffect::AddFinalizer
                | MachineEffect::ResolveDigest(_)
                | MachineEffect::ClearBootOverride(_)
                | MachineEffect::Record { .. } => {}
            }
        }
        decision
    }

    pub(crate) fn host_condition(&self, kind: &str) -> (Truth, String, String) {
        shown(condition::get(&self.host.status.conditions, kind))
    }

    pub(crate) fn machine_condition(&self, kind: &str) -> (Truth, String, String) {
        shown(condition::get(&self.machine.status.conditions, kind))
    }
}

fn shown(condition: Option<&Condition>) -> (Truth, String, String) {
    let c = condition.expect("the condition is set");
    (c.status, c.reason.clone(), c.message.clone())
}

/// A BMC that refuses connections.
pub(crate) fn down() -> BmcObservation {
    BmcObservation::Unreachable { class: farrier_shared::lifecycle::fault::Transient::Refused }
}
