//! What the reconcilers remember between passes. All of it may be lost: every pass decides from the store, and
//! what is missing here only costs another look at a BMC or another fetch.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use farrier_shared::contract::{HostKey, WebUrl};
use farrier_shared::lifecycle::digest_url::{self, Backoff};
use farrier_shared::lifecycle::host_view::script_fetched;
use farrier_shared::lifecycle::{BmcObservation, ClockStep, Credentials, DigestRead, Progress, Timings};
use farrier_shared::resource::host::RedfishConnection;
use farrier_shared::resource::{Beskar7Machine, HostState, PhysicalHost};
use tokio::time::Instant;

use crate::progress::ProgressEntry;

/// How long an installed system may take to come up and have its addresses.
const SETTLES: Duration = Duration::from_secs(30 * 60);

/// What is remembered; shared by all passes.
#[derive(Debug, Default)]
pub(super) struct Memory(Mutex<Remembered>);

#[derive(Debug, Default)]
struct Remembered {
    hosts: HashMap<HostKey, OfHost>,
    machines: HashMap<HostKey, OfMachine>,
}

#[derive(Debug, Default)]
struct OfHost {
    /// The incarnation all this is about.
    uid: String,
    booted: Option<Booted>,
    /// What the BMC last said, until a pass has made use of it.
    observed: Option<BmcObservation>,
    /// How many times in a row it failed.
    bmc_failures: u32,
    /// How it was reached then.
    asked: Option<RedfishConnection>,
    progress: Option<Progress>,
    /// Its state when its BMC was last asked, and since when it is `Ready` if it became so here.
    asked_in: Option<HostState>,
    ready_since: Option<Instant>,
    /// The operator has paused it or its machine.
    paused: bool,
    /// When that last ended, in monotonic time.
    resumed: Option<Duration>,
}

/// What the host was last powered for.
#[derive(Debug)]
struct Booted {
    /// The machine's uid.
    machine: String,
    run: String,
    /// Whether the BMC has confirmed it.
    confirmed: bool,
}

#[derive(Debug, Default)]
struct OfMachine {
    uid: String,
    digest: Option<(WebUrl, DigestAttempt)>,
    backoff: Backoff,
    /// Boots that failed in a row, and until when the next is not tried.
    boot_failures: u32,
    boot_after: Option<Instant>,
}

#[derive(Debug)]
struct DigestAttempt {
    read: DigestRead,
    /// Until when it is used again.
    until: Instant,
}

impl Memory {
    fn lock(&self) -> MutexGuard<'_, Remembered> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with_host<T>(&self, host: &PhysicalHost, act: impl FnOnce(&mut OfHost) -> T) -> T {
        let mut all = self.lock();
        let entry = all.hosts.entry(host.metadata.key()).or_default();
        if entry.uid != host.metadata.uid {
            *entry = OfHost { uid: host.metadata.uid.clone(), ..OfHost::default() };
        }
        act(entry)
    }

    fn with_machine<T>(&self, machine: &Beskar7Machine, act: impl FnOnce(&mut OfMachine) -> T) -> T {
        let mut all = self.lock();
        let entry = all.machines.entry(machine.metadata.key()).or_default();
        if entry.uid != machine.metadata.uid {
            *entry = OfMachine { uid: machine.metadata.uid.clone(), ..OfMachine::default() };
        }
        act(entry)
    }

    pub(super) fn forget_host(&self, key: &HostKey) {
        self.lock().hosts.remove(key);
    }

    pub(super) fn forget_machine(&self, key: &HostKey) {
        self.lock().machines.remove(key);
    }

    /// A boot has failed; gives how long the next one waits.
    pub(super) fn boot_failed(&self, machine: &Beskar7Machine, timings: &Timings) -> Duration {
        self.with_machine(machine, |m| {
            m.boot_failures = m.boot_failures.saturating_add(1);
            let wait = timings.backoff(m.boot_failures);
            m.boot_after = Some(Instant::now() + wait);
            wait
        })
    }

    /// How much longer the machine's next boot waits, if it does.
    pub(super) fn boot_waits(&self, machine: &Beskar7Machine) -> Option<Duration> {
        let left = self.with_machine(machine, |m| m.boot_after)?.saturating_duration_since(Instant::now());
        (!left.is_zero()).then_some(left)
    }

    /// A boot has succeeded or is no longer what is called for.
    pub(super) fn boot_over(&self, machine: &Beskar7Machine) {
        self.with_machine(machine, |m| (m.boot_failures, m.boot_after) = (0, None));
    }

    /// Remembers that the host is about to be powered for this run of this machine. The answer may be lost.
    pub(super) fn booting(&self, host: &PhysicalHost, machine: &Beskar7Machine, run: &str) {
        self.remember_boot(host, machine, run, false);
    }

    /// Remembers that the host was powered for this run of this machine.
    pub(super) fn booted(&self, host: &PhysicalHost, machine: &Beskar7Machine, run: &str) {
        self.remember_boot(host, machine, run, true);
    }

    fn remember_boot(&self, host: &PhysicalHost, machine: &Beskar7Machine, run: &str, confirmed: bool) {
        let booted = Booted { machine: machine.metadata.uid.clone(), run: run.to_owned(), confirmed };
        self.with_host(host, |h| h.booted = Some(booted));
    }

    /// The run this machine powered the host for. That it came to that is told by the BMC, or else by firmware, which has
    /// fetched the script of these credentials.
    pub(super) fn booted_run(
        &self,
        host: &PhysicalHost,
        machine: &Beskar7Machine,
        credentials: Option<&Credentials>,
    ) -> Option<String> {
        let fetched =
            |run: &str| credentials.is_some_and(|c| c.run == run && script_fetched(&host.status, c));
        self.with_host(host, |h| {
            let booted = h.booted.as_ref().filter(|b| b.machine == machine.metadata.uid)?;
            (booted.confirmed || fetched(&booted.run)).then(|| booted.run.clone())
        })
    }

    /// The claim has ended: what was booted for it, and what it told, is over.
    pub(super) fn forget_boot(&self, host: &PhysicalHost) {
        self.with_host(host, |h| (h.booted, h.progress) = (None, None));
    }

    /// Takes in whether the operator has paused the host or its machine; gives when that last ended.
    pub(super) fn resumed(&self, host: &PhysicalHost, paused: bool, monotonic: Duration) -> Option<Duration> {
        self.with_host(host, |h| {
            if h.paused && !paused {
                h.resumed = Some(monotonic);
            }
            h.paused = paused;
            h.resumed
        })
    }

    /// Keeps what the BMC said for the host's next pass; gives how often it failed in a row.
    pub(super) fn observed(&self, host: &PhysicalHost, observation: BmcObservation) -> u32 {
        self.with_host(host, |h| {
            let connection = &host.spec.redfish_connection;
            if h.asked.as_ref() != Some(connection) {
                (h.asked, h.bmc_failures) = (Some(connection.clone()), 0);
            }
            h.bmc_failures = match observation {
                BmcObservation::Up(_) | BmcObservation::NotAsked => 0,
                _ => h.bmc_failures.saturating_add(1),
            };
            h.observed = Some(observation);
            h.bmc_failures
        })
    }

    /// Whether the host became `Ready` a short while ago; asked before each look at its BMC.
    pub(super) fn lately_ready(&self, host: &PhysicalHost) -> bool {
        let state = host.status.state;
        self.with_host(host, |h| {
            let before = h.asked_in.replace(state);
            if before.is_some_and(|before| before != state) {
                h.ready_since = (state == HostState::Ready).then(Instant::now);
            }
            h.ready_since.is_some_and(|since| since.elapsed() < SETTLES)
        })
    }

    /// Whether the BMC is reached in another way since it was last asked: what it said then says nothing now.
    pub(super) fn reached_otherwise(&self, host: &PhysicalHost) -> bool {
        self.with_host(host, |h| h.asked.as_ref().is_some_and(|c| *c != host.spec.redfish_connection))
    }

    /// What the BMC said since the last pass that made use of it, and its failures in a row.
    pub(super) fn observation(&self, host: &PhysicalHost) -> (BmcObservation, u32) {
        self.with_host(host, |h| (h.observed.clone().unwrap_or_default(), h.bmc_failures))
    }

    /// The host's pass has written what followed from this observation.
    pub(super) fn observation_used(&self, host: &PhysicalHost, used: &BmcObservation) {
        self.with_host(host, |h| {
            if h.observed.as_ref() == Some(used) {
                h.observed = None;
            }
        });
    }

    /// Folds an agent's event in; whether it is the first of its run.
    pub(super) fn progressed(&self, host: &HostKey, entry: &ProgressEntry) -> bool {
        let Some(run) = &entry.event.run else { return false };
        let mut all = self.lock();
        // A host no pass has seen yet keeps nothing: its next event comes soon.
        let Some(of_host) = all.hosts.get_mut(host) else { return false };
        let first = of_host.progress.as_ref().is_none_or(|p| p.run != *run);
        of_host.progress = Some(Progress::observe(of_host.progress.as_ref(), run, &entry.event, entry.at));
        first
    }

    /// The clock was set: when runs last advanced is told by the new one.
    pub(super) fn clock_was_set(&self, step: ClockStep) {
        self.lock()
            .hosts
            .values_mut()
            .filter_map(|h| h.progress.as_mut())
            .for_each(|p| step.apply_to_progress(p));
    }

    pub(super) fn progress(&self, host: &PhysicalHost) -> Option<Progress> {
        self.with_host(host, |h| h.progress.clone())
    }

    /// What is known of the machine's checksum file.
    pub(super) fn digest(&self, machine: &Beskar7Machine) -> DigestRead {
        let Some(wanted) = &machine.spec.target_image_digest_url else { return DigestRead::Unknown };
        let now = Instant::now();
        self.with_machine(machine, |m| match &m.digest {
            Some((url, attempt)) if url == wanted && now < attempt.until => match &attempt.read {
                DigestRead::Failed { message, .. } => {
                    DigestRead::Failed { message: message.clone(), retry_in: attempt.until - now }
                }
                other => other.clone(),
            },
            _ => DigestRead::Unknown,
        })
    }

    /// Keeps a fetched checksum file's outcome.
    pub(super) fn digest_fetched(
        &self,
        machine: &Beskar7Machine,
        url: WebUrl,
        fetched: Result<farrier_shared::contract::Digest, String>,
        timings: &Timings,
    ) {
        let now = Instant::now();
        self.with_machine(machine, |m| {
            let (read, lasts): (DigestRead, Duration) = match fetched {
                Ok(digest) => {
                    m.backoff = Backoff::default();
                    (DigestRead::Resolved { url: url.clone(), digest }, digest_url::REUSE)
                }
                Err(message) => {
                    if m.digest.as_ref().is_some_and(|(before, _)| *before != url) {
                        m.backoff = Backoff::default();
                    }
                    let retry_in = m.backoff.failed(timings);
                    (DigestRead::Failed { message, retry_in }, retry_in)
                }
            };
            m.digest = Some((url, DigestAttempt { read, until: now + lasts }));
        });
    }
}
