//! The model: three hosts, two machines, a store with compare-and-swap, BMCs, agents and a clock, all in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use farrier_shared::contract::name::HostKey;
use farrier_shared::contract::provider_id::ProviderId;
use farrier_shared::contract::secret::Token;
use farrier_shared::contract::time::Time;
use farrier_shared::contract::web_url::WebUrl;
use farrier_shared::lifecycle::mint::Entropy;
use farrier_shared::lifecycle::{
    ClockStep, Credentials, CredentialsRead, DigestRead, HistoryEntry, PowerState, Progress, Signal, Timings,
    host_view,
};
use farrier_shared::resource::machine::HardwareRequirements;
use farrier_shared::resource::{Beskar7Machine, ObjectMeta, PhysicalHost};

use crate::event::{BmcState, Event};
use crate::objects::{host_named, machine_named, name};

pub(crate) const HOSTS: usize = 3;
pub(crate) const MACHINES: usize = 2;

pub(crate) struct Bmc {
    pub(crate) state: BmcState,
    pub(crate) power: PowerState,
}

/// An agent that got a boot script once; it may call at any time, long after its machine was reset.
pub(crate) struct Agent {
    pub(crate) host: usize,
    pub(crate) token: Token,
    pub(crate) run: String,
}

/// What reading a host's credentials gave.
pub(crate) enum Stored {
    Absent,
    Unreadable,
    Present(Credentials, u64),
}

impl Stored {
    pub(crate) fn read(&self) -> CredentialsRead<'_> {
        match self {
            Self::Absent => CredentialsRead::Absent,
            Self::Unreadable => CredentialsRead::Unreadable,
            Self::Present(credentials, _) => CredentialsRead::Present(credentials),
        }
    }

    pub(crate) fn version(&self) -> Option<u64> {
        match self {
            Self::Present(_, version) => Some(*version),
            Self::Absent | Self::Unreadable => None,
        }
    }
}

pub(crate) struct World {
    pub(crate) now: Time,
    pub(crate) listening_since: Time,
    /// When the controller was started, by its clock.
    started: Time,
    pub(crate) timings: Timings,
    pub(crate) hosts: Vec<PhysicalHost>,
    pub(crate) machines: Vec<Option<Beskar7Machine>>,
    pub(crate) credentials: BTreeMap<usize, (Credentials, u64)>,
    pub(crate) signals: BTreeMap<usize, Vec<Signal>>,
    pub(crate) seen_signals: Vec<Signal>,
    pub(crate) history: Vec<HistoryEntry>,
    pub(crate) notes: Vec<String>,
    pub(crate) booted: BTreeMap<usize, String>,
    pub(crate) progress: BTreeMap<usize, Progress>,
    pub(crate) bmcs: Vec<Bmc>,
    pub(crate) bmc_failures: Vec<u32>,
    pub(crate) agents: Vec<Agent>,
    pub(crate) old_nonces: Vec<String>,
    /// Every token and nonce ever minted.
    pub(crate) secrets: BTreeSet<String>,
    /// Runs whose agent reported success and was told 202 with the report on record.
    pub(crate) provisioned: BTreeSet<String>,
    /// Runs whose report is on record.
    pub(crate) reported: BTreeSet<String>,
    /// Runs whose success was put on record after their report: they are owed an end.
    pub(crate) owed: BTreeSet<String>,
    /// Runs that were declared failed, by host or machine.
    pub(crate) failed: BTreeSet<String>,
    /// Hosts whose credentials cannot be read, though they may be there.
    pub(crate) unreadable: BTreeSet<usize>,
    /// What each machine's checksum file says, if it can be fetched.
    pub(crate) checksums: Vec<Option<u8>>,
    /// What the last fetch of each machine's checksum file gave, from where, and until when that is used.
    pub(crate) fetched: BTreeMap<usize, (WebUrl, DigestRead, Time)>,
    /// Hosts that were moved here with their machine installed on them.
    pub(crate) moved: BTreeSet<usize>,
    /// What went wrong outside any one state.
    pub(crate) violations: Vec<String>,
    counter: u64,
}

/// One of the places where checksum files are.
fn checksum_file(place: u8) -> WebUrl {
    format!("https://images.example/{place}/SHA256SUMS").parse().unwrap()
}

pub(crate) fn host_key(index: usize) -> HostKey {
    HostKey::new(name("default"), name(&format!("host-{index}")))
}

pub(crate) fn host_index(key: &HostKey) -> usize {
    (0..HOSTS).find(|i| host_key(*i) == *key).unwrap()
}

impl World {
    pub(crate) fn new() -> Self {
        let mut world = Self {
            now: Time::from_unix(1_700_000_000),
            listening_since: Time::from_unix(1_700_000_000),
            started: Time::from_unix(1_700_000_000),
            timings: Timings::default(),
            hosts: Vec::new(),
            machines: Vec::new(),
            credentials: BTreeMap::new(),
            signals: BTreeMap::new(),
            seen_signals: Vec::new(),
            history: Vec::new(),
            notes: Vec::new(),
            booted: BTreeMap::new(),
            progress: BTreeMap::new(),
            bmcs: Vec::new(),
            bmc_failures: vec![0; HOSTS],
            agents: Vec::new(),
            old_nonces: Vec::new(),
            secrets: BTreeSet::new(),
            provisioned: BTreeSet::new(),
            reported: BTreeSet::new(),
            owed: BTreeSet::new(),
            failed: BTreeSet::new(),
            unreadable: BTreeSet::new(),
            checksums: vec![Some(9); MACHINES],
            fetched: BTreeMap::new(),
            moved: BTreeSet::new(),
            violations: Vec::new(),
            counter: 0,
        };
        for index in 0..HOSTS {
            let mut host = host_named(&format!("host-{index}"));
            host.metadata.finalizers.clear();
            host.metadata.resource_version = world.version();
            world.hosts.push(host);
            world.bmcs.push(Bmc { state: BmcState::Up, power: PowerState::Off });
        }
        for index in 0..MACHINES {
            world.machines.push(None);
            world.create(index);
        }
        world
    }

    pub(crate) fn version(&mut self) -> String {
        self.counter += 1;
        self.counter.to_string()
    }

    pub(crate) fn entropy(&mut self) -> Entropy {
        self.counter += 1;
        let fill = |tag: u8| {
            let mut bytes = [tag; 32];
            bytes[..8].copy_from_slice(&self.counter.to_le_bytes());
            bytes
        };
        Entropy { token: fill(0xa5), nonce: fill(0x5a), run: self.counter.to_le_bytes() }
    }

    /// The operator makes machine `index`, with an identity of its own each time.
    pub(crate) fn create(&mut self, index: usize) {
        if self.machines[index].is_some() {
            return;
        }
        let mut machine = machine_named(&format!("machine-{index}"));
        machine.metadata.finalizers.clear();
        machine.metadata.resource_version = self.version();
        machine.metadata.uid = format!("machine-uid-{index}-{}", machine.metadata.resource_version);
        machine.spec.hardware_requirements =
            Some(HardwareRequirements { min_cpu_cores: Some(16), ..HardwareRequirements::default() });
        if index % 2 == 1 {
            machine.spec.target_image_digest = None;
            machine.spec.target_image_digest_url = Some(checksum_file(0));
        }
        self.machines[index] = Some(machine);
    }

    pub(crate) fn step(&mut self, event: &Event) {
        match event {
            Event::HostPass { host, ask_bmc, cut, meanwhile } => {
                self.host_pass(*host, *ask_bmc, *cut, meanwhile.as_deref());
            }
            Event::MachinePass { machine, cut, meanwhile } => {
                self.machine_pass(*machine, *cut, meanwhile.as_deref());
            }
            Event::Fetch { host, client, old_nonce } => {
                let client = IpAddr::V4(Ipv4Addr::new(10, 0, 0, *client));
                self.fetch(*host, client, *old_nonce);
            }
            Event::Call { agent, call, meanwhile } => self.call(*agent, *call, meanwhile.as_deref()),
            Event::Forge { host, kind } => self.forge(*host, *kind),
            Event::Replay { host, signal } => self.replay(*host, *signal),
            Event::Bmc { host, state } => self.bmcs[*host].state = *state,
            Event::Wait { seconds } => self.now = self.now + Duration::from_secs((*seconds).into()),
            Event::SetClock { seconds } => self.set_clock(*seconds),
            Event::Delete { machine, force } => self.delete(*machine, *force),
            Event::Create { machine } => self.create(*machine),
            Event::PauseMachine { machine, paused } => {
                if let Some(machine) = &mut self.machines[*machine] {
                    pause(&mut machine.metadata, *paused);
                }
            }
            Event::PauseHost { host, paused } => {
                let version = self.version();
                let metadata = &mut self.hosts[*host].metadata;
                pause(metadata, *paused);
                metadata.resource_version = version;
            }
            Event::Restart => self.restart(),
            Event::Credentials { host, readable: true } => drop(self.unreadable.remove(host)),
            Event::Credentials { host, readable: false } => drop(self.unreadable.insert(*host)),
            Event::Checksum { machine, answer } => self.checksums[*machine] = *answer,
            Event::ChecksumFile { machine, place } => {
                if let Some(machine) = &mut self.machines[*machine]
                    && let Some(url) = &mut machine.spec.target_image_digest_url
                {
                    *url = checksum_file(*place);
                }
            }
            Event::Move { host } => self.move_here(*host),
        }
    }

    pub(crate) fn restart(&mut self) {
        self.booted.clear();
        self.progress.clear();
        self.fetched.clear();
        self.bmc_failures = vec![0; HOSTS];
        self.listening_since = self.now;
        self.started = self.now;
    }

    /// The clock is set, and what it told is taken along as the controller does.
    fn set_clock(&mut self, seconds: i64) {
        let step = ClockStep { since: self.started, before: self.now, seconds };
        let along = |time: Time| Time::from_unix(time.unix() + seconds);
        self.now = along(self.now);
        self.started = along(self.started);
        self.listening_since = self.now;
        self.progress.values_mut().for_each(|progress| step.apply_to_progress(progress));
        // Kept by a clock that is never set.
        self.fetched.values_mut().for_each(|(_, _, until)| *until = along(*until));
        for index in 0..HOSTS {
            if let Some((credentials, _)) = self.credentials.get(&index)
                && let Some(new) = step.apply_to_credentials(credentials)
            {
                let version = self.version().parse().unwrap();
                self.credentials.insert(index, (new, version));
            }
            let claimed = self.hosts[index].spec.consumer_ref.is_some();
            let mut status = self.hosts[index].status.clone();
            step.apply_to_host(&mut status);
            if claimed && status != self.hosts[index].status {
                self.hosts[index].metadata.resource_version = self.version();
                self.hosts[index].status = status;
            }
        }
    }

    fn delete(&mut self, index: usize, force: bool) {
        let now = self.now;
        let Some(machine) = &mut self.machines[index] else { return };
        machine.metadata.deletion_timestamp.get_or_insert(now);
        if force {
            let key = "infrastructure.cluster.x-k8s.io/force-release".to_owned();
            machine.metadata.annotations.insert(key, "true".to_owned());
        }
        if machine.metadata.finalizers.is_empty() {
            self.machines[index] = None;
        }
    }

    /// Host and machine come from another cluster, as backup and restore move them: with specs and names, without
    /// status, credentials and identities.
    fn move_here(&mut self, index: usize) {
        let machine = self.machine_of(index).map(|m| m.metadata.name.clone());
        let machine =
            self.machines.iter().position(|m| m.as_ref().map(|m| &m.metadata.name) == machine.as_ref());
        let version = self.version();
        if let Some(machine) = machine.and_then(|at| self.machines[at].as_mut()) {
            if machine.metadata.deletion_timestamp.is_some() {
                return;
            }
            machine.metadata.uid = format!("{}-uid-{version}", machine.metadata.name);
            machine.metadata.resource_version.clone_from(&version);
            machine.status = Default::default();
            if machine.spec.provider_id == Some(ProviderId::of(&host_key(index))) {
                self.moved.insert(index);
            }
        }
        let host = &mut self.hosts[index];
        host.metadata.uid = format!("{}-uid-{version}", host.metadata.name);
        host.metadata.resource_version = version;
        host.status = Default::default();
        self.credentials.remove(&index);
        self.signals.remove(&index);
        self.booted.remove(&index);
        self.progress.remove(&index);
    }

    /// A host's credentials as a reader finds them now.
    pub(crate) fn stored(&self, host: usize) -> Stored {
        if self.unreadable.contains(&host) {
            return Stored::Unreadable;
        }
        self.credentials.get(&host).cloned().map_or(Stored::Absent, |(c, v)| Stored::Present(c, v))
    }

    /// Everything gets its turn, `count` times over, undisturbed.
    pub(crate) fn rounds(&mut self, count: usize) {
        for _ in 0..count {
            for machine in 0..MACHINES {
                self.machine_pass(machine, None, None);
            }
            for host in 0..HOSTS {
                self.host_pass(host, true, None, None);
            }
            self.now = self.now + Duration::from_secs(1);
        }
    }

    pub(crate) fn machine_of(&self, host: usize) -> Option<&Beskar7Machine> {
        let key = host_view::consumer_key(&self.hosts[host])?;
        self.machines.iter().flatten().find(|m| m.metadata.key() == key)
    }

    /// Changes a host behind the decisions' back.
    pub(crate) fn tamper(&mut self, host: usize, change: impl FnOnce(&mut PhysicalHost)) {
        change(&mut self.hosts[host]);
    }
}

fn pause(metadata: &mut ObjectMeta, paused: bool) {
    let key = farrier_shared::resource::metadata::PAUSED;
    if paused {
        metadata.annotations.insert(key.to_owned(), String::new());
    } else {
        metadata.annotations.remove(key);
    }
}
