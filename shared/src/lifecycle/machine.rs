//! One pass over a machine: what is known goes in, the next status and a list of effects come out.

use std::fmt;
use std::time::Duration;

use super::boot_plan::BootPlan;
use super::claim;
use super::credentials::{Credentials, CredentialsRead};
use super::deadline::Clock;
use super::history::HistoryEntry;
use super::machine_claim;
use super::machine_release;
use super::machine_run;
use super::machine_status::Draft;
use super::reasons;
use super::signal::{Signal, SignalKey};
use crate::contract::digest::Digest;
use crate::contract::name::HostKey;
use crate::contract::provider_id::ProviderId;
use crate::contract::time::Time;
use crate::contract::web_url::WebUrl;
use crate::resource::machine::{Beskar7MachineStatus, MachinePhase};
use crate::resource::{Beskar7Machine, PhysicalHost};

/// Finalizer of a machine: its host is let go before the object is removed.
pub const MACHINE_FINALIZER: &str = "beskar7machine.infrastructure.cluster.x-k8s.io";
/// Annotation: let the host go without asking its BMC.
pub const FORCE_RELEASE: &str = "infrastructure.cluster.x-k8s.io/force-release";
/// Annotation: the object is deleted because it was moved; its host stays as it is.
pub const DELETE_FOR_MOVE: &str = "clusterctl.cluster.x-k8s.io/delete-for-move";

/// The object that owns the machine, where the store has such.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnerRead<'a> {
    /// The store knows no owners: the machine stands for itself.
    Standalone,
    /// None yet.
    Missing,
    /// A Cluster API Machine.
    Owned {
        /// `Cluster.spec.paused`.
        cluster_paused: bool,
        /// `Machine.spec.failureDomain`.
        failure_domain: Option<&'a str>,
    },
}

/// The user-data Secret, by existence alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BootstrapRead {
    /// Nobody has named one yet.
    Unnamed,
    /// Named, but there is no such Secret.
    Missing,
    /// It is there.
    Present,
    /// The store did not answer: nothing is concluded.
    Unreadable,
}

/// What the shell knows of the checksum file at the machine's `targetImageDigestURL`.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum DigestRead {
    /// Nothing yet, and a fetch is due.
    #[default]
    Unknown,
    /// Fetched from `url`.
    Resolved {
        /// Where from.
        url: WebUrl,
        /// What it says.
        digest: Digest,
    },
    /// Fetching failed; to be tried again in `retry_in`.
    Failed {
        /// Why, without anything the server sent.
        message: String,
        /// When the next try is due.
        retry_in: Duration,
    },
}

/// Everything a pass over a machine depends on.
#[derive(Clone, Copy, Debug)]
pub struct MachineFacts<'a> {
    /// The machine, freshly read.
    pub machine: &'a Beskar7Machine,
    /// Its owner.
    pub owner: OwnerRead<'a>,
    /// Its user-data.
    pub bootstrap: BootstrapRead,
    /// The checksum file, when its spec names one.
    pub digest: &'a DigestRead,
    /// Every host of its namespace, sorted. [`claim::claimed_host`] tells which of them it has.
    pub hosts: &'a [PhysicalHost],
    /// Credentials of the host it has.
    pub credentials: CredentialsRead<'a>,
    /// Waiting signals of the host it has.
    pub signals: &'a [Signal],
    /// The run the shell remembers having powered that host for, since its present claim.
    pub booted_run: Option<&'a str>,
    /// Now and durations; `progress` is that of the host it has.
    pub clock: Clock<'a>,
}

impl<'a> MachineFacts<'a> {
    /// The host this machine has.
    pub fn host(&self) -> Option<&'a PhysicalHost> {
        claim::claimed_host(self.machine, self.hosts)
    }

    /// The run the host was powered for: remembered, or told by its waiting bound `inspect`, or accepted.
    pub(super) fn booted(&self, host: &PhysicalHost) -> Option<String> {
        use super::verdict::{Verdict, verdict};
        let run = self.credentials.bound(host).ok().map(|c| c.run.as_str())?;
        let waiting = self.signals.iter().any(|s| {
            s.key == SignalKey::InspectionRequest
                && s.value == "inspect"
                && verdict(host, self.credentials, s) == Verdict::Bound
        });
        let accepted = host.status.run.as_deref() == Some(run);
        (self.booted_run == Some(run) || waiting || accepted).then(|| run.to_owned())
    }
}

/// A power action on a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PowerAction {
    /// Switch on.
    On,
    /// Ask the operating system to shut down.
    GracefulShutdown,
    /// Cut the power.
    ForceOff,
    /// Cut the power and switch on.
    ForceRestart,
}

impl fmt::Display for PowerAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::On => "switching on",
            Self::GracefulShutdown => "shutting down",
            Self::ForceOff => "cutting the power",
            Self::ForceRestart => "restarting",
        })
    }
}

/// What the shell is to do, in the order given. Any of it may happen twice, or stop in the middle: the next
/// pass completes it. A failing effect ends the pass unless its text says otherwise.
#[derive(Clone, Debug, PartialEq)]
pub enum MachineEffect {
    /// Add [`MACHINE_FINALIZER`].
    AddFinalizer,
    /// Remove [`MACHINE_FINALIZER`]. An object that is gone already is no failure.
    RemoveFinalizer,
    /// Write [`MachineDecision::status`].
    WriteStatus,
    /// Write `spec.providerID`.
    SetProviderId(ProviderId),
    /// Fetch the checksum file; the pass after that has its outcome in [`MachineFacts::digest`].
    ResolveDigest(WebUrl),
    /// Write [`claim::reference_to`] this machine into the host's `spec.consumerRef`, compare-and-swap on the
    /// version the facts were read at. On conflict the pass ends and starts anew after `Timings::soon`.
    Claim(HostKey),
    /// Boot the inspection image: see [`BootPlan`].
    Boot(Box<BootPlan>),
    /// Record this signal on the host.
    Signal {
        /// The host.
        host: HostKey,
        /// The signal.
        signal: Signal,
        /// A failure is logged and the pass goes on.
        best_effort: bool,
    },
    /// Ask the BMC whether the host is off and switch it on if so. A failure is logged and the pass goes on.
    EnsurePoweredOn(HostKey),
    /// Clear the boot override. A failure is logged and the pass goes on.
    ClearBootOverride(HostKey),
    /// Carry out a power action. A failure goes to the host's history and the pass goes on.
    Power {
        /// The host.
        host: HostKey,
        /// What to do.
        action: PowerAction,
    },
    /// Write these credentials, whose token was cut, compare-and-swap on the version that was read.
    CutToken {
        /// The host.
        host: HostKey,
        /// The record.
        credentials: Box<Credentials>,
    },
    /// Remove the host's `spec.consumerRef` if it is still this machine's, compare-and-swap; forget what was
    /// booted. On conflict the pass ends and starts anew after `Timings::soon`.
    Release(HostKey),
    /// Append to the host's history. Failing, it is logged and the pass goes on.
    Record {
        /// The host.
        host: HostKey,
        /// The line.
        entry: HistoryEntry,
    },
}

/// What comes out of a pass over a machine.
#[derive(Clone, Debug, PartialEq)]
pub struct MachineDecision {
    /// The next status; written where [`MachineEffect::WriteStatus`] stands, and only then.
    pub status: Beskar7MachineStatus,
    /// What to do, in order.
    pub effects: Vec<MachineEffect>,
    /// When to look again at the latest, if nothing wakes the machine before.
    pub requeue: Duration,
    /// Why the pass counts as failed although it could be carried out: the shell's back-off applies.
    pub error: Option<String>,
    /// For the log, at info; never a secret.
    pub notes: Vec<String>,
}

impl MachineDecision {
    /// The status to write when carrying out [`MachineEffect::Boot`] failed: the operator sees why, and the
    /// machine is no further than `before`.
    pub fn after_failed_boot(
        &self,
        before: &Beskar7MachineStatus,
        now: Time,
        why: &str,
    ) -> Beskar7MachineStatus {
        let mut draft = Draft::resume(self.status.clone(), now);
        draft.status.phase = before.phase;
        draft.not_ready(
            reasons::PHYSICAL_HOST_NOT_READY,
            &format!("Booting the host failed, will retry: {why}"),
        );
        draft.decide(Vec::new(), Vec::new(), Duration::ZERO).status
    }
}

/// Decides one pass over a machine.
pub fn decide_machine(facts: &MachineFacts<'_>) -> MachineDecision {
    let (machine, timings) = (facts.machine, facts.clock.timings);
    let draft = Draft::new(facts);
    let cluster_paused = matches!(facts.owner, OwnerRead::Owned { cluster_paused: true, .. });
    if cluster_paused || machine.metadata.is_paused() {
        return draft.untouched(timings.healthy);
    }
    if machine.metadata.deletion_timestamp.is_some() {
        return machine_release::decide(facts, draft);
    }
    if facts.owner == OwnerRead::Missing {
        return draft.untouched(timings.incomplete);
    }
    if !machine.metadata.finalizers.iter().any(|f| f == MACHINE_FINALIZER) {
        return draft.only(MachineEffect::AddFinalizer, timings.soon);
    }
    if machine.status.phase == Some(MachinePhase::Failed) {
        return machine_run::failed_already(facts, draft);
    }
    match (facts.host(), machine_claim::pin_digest(facts)) {
        (_, Some(step)) => machine_claim::apply_digest_step(facts, draft, step),
        (Some(host), None) => machine_run::decide(facts, host, draft),
        (None, None) => machine_claim::decide(facts, draft),
    }
}
