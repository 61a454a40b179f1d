//! The model: three hosts, two machines, a store with compare-and-swap, BMCs, agents and a clock, all in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use farrier_shared::contract::digest::Digest;
use farrier_shared::contract::name::{HostKey, Name};
use farrier_shared::contract::secret::Token;
use farrier_shared::contract::time::Time;
use farrier_shared::lifecycle::mint::Entropy;
use farrier_shared::lifecycle::{
    Credentials, HistoryEntry, PowerState, Progress, Signal, Timings, host_view,
};
use farrier_shared::resource::host::{PhysicalHostSpec, RedfishConnection};
use farrier_shared::resource::machine::{Beskar7MachineSpec, HardwareRequirements};
use farrier_shared::resource::{Beskar7Machine, ObjectMeta, PhysicalHost};

use crate::event::{BmcState, Event};

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

pub(crate) struct World {
    pub(crate) now: Time,
    pub(crate) listening_since: Time,
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
    /// What went wrong outside any one state.
    pub(crate) violations: Vec<String>,
    counter: u64,
}

fn name(text: &str) -> Name {
    text.parse().unwrap()
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
            violations: Vec::new(),
            counter: 0,
        };
        for index in 0..HOSTS {
            let mut metadata = ObjectMeta::new(name("default"), name(&format!("host-{index}")));
            metadata.uid = format!("host-uid-{index}");
            metadata.resource_version = world.version();
            let redfish_connection = RedfishConnection {
                address: "https://bmc.example".parse().unwrap(),
                credentials_secret_ref: name("bmc"),
                insecure_skip_verify: None,
                ca_bundle_secret_ref: None,
            };
            let spec = PhysicalHostSpec {
                redfish_connection,
                consumer_ref: None,
                boot_mac_addresses: Vec::new(),
                agent_options: Default::default(),
            };
            world.hosts.push(PhysicalHost::new(metadata, spec));
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
        let mut metadata = ObjectMeta::new(name("default"), name(&format!("machine-{index}")));
        metadata.resource_version = self.version();
        metadata.uid = format!("machine-uid-{index}-{}", metadata.resource_version);
        let spec = Beskar7MachineSpec {
            provider_id: None,
            inspection_image_url: "http://images.example/inspection".parse().unwrap(),
            target_image_url: "http://images.example/os.raw".parse().unwrap(),
            target_image_digest: Some(Digest::from_bytes([7; 32])),
            target_image_digest_url: None,
            target_disk: None,
            static_ip: None,
            hardware_requirements: Some(HardwareRequirements {
                min_cpu_cores: Some(16),
                ..HardwareRequirements::default()
            }),
            host_selector: None,
            host_name: None,
            bootstrap: None,
            agent_options: Default::default(),
        };
        self.machines[index] = Some(Beskar7Machine::new(metadata, spec));
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
        }
    }

    pub(crate) fn restart(&mut self) {
        self.booted.clear();
        self.progress.clear();
        self.bmc_failures = vec![0; HOSTS];
        self.listening_since = self.now;
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
