//! One pass over a host: what is known goes in, the next status and a list of effects come out.

use std::time::Duration;

use super::credentials::{Credentials, CredentialsRead};
use super::deadline::Clock;
use super::fault::BmcObservation;
use super::history::HistoryEntry;
use super::host_pass::Pass;
use super::host_view::{self, HOST_FINALIZER};
use super::signal::Signal;
use crate::resource::host::PhysicalHostStatus;
use crate::resource::{Beskar7Machine, PhysicalHost};

/// The machine that has claimed the host, as far as reading it went.
#[derive(Clone, Copy, Debug, Default)]
pub enum ConsumerRead<'a> {
    /// No claim, or the store did not answer: nothing is concluded.
    #[default]
    Unknown,
    /// There is no such machine; it may come later, when objects are moved between clusters.
    Missing,
    /// This one.
    Found(&'a Beskar7Machine),
}

/// Everything a pass over a host depends on.
#[derive(Clone, Copy, Debug)]
pub struct HostFacts<'a> {
    /// The host, freshly read.
    pub host: &'a PhysicalHost,
    /// The machine its claim names.
    pub consumer: ConsumerRead<'a>,
    /// Its credentials record.
    pub credentials: CredentialsRead<'a>,
    /// Its waiting signals.
    pub signals: &'a [Signal],
    /// What this pass learnt of the BMC.
    pub bmc: &'a BmcObservation,
    /// How many passes in a row the BMC failed, this one included.
    pub bmc_failures: u32,
    /// Base URL agents call, for `status.bootstrap.url`.
    pub callback_url: &'a str,
    /// Now, progress and durations.
    pub clock: Clock<'a>,
}

/// What the shell is to do, in the order given. Any of it may happen twice, or stop in the middle: the next
/// pass completes it. A failing effect ends the pass unless its text says otherwise.
#[derive(Clone, Debug, PartialEq)]
pub enum HostEffect {
    /// Add [`HOST_FINALIZER`].
    AddFinalizer,
    /// Remove [`HOST_FINALIZER`]; the object goes with it.
    RemoveFinalizer,
    /// Write [`HostDecision::status`], compare-and-swap on the version the facts were read at. On conflict the
    /// pass ends and starts anew.
    WriteStatus,
    /// Remove this very signal; not one that has replaced it since.
    RemoveSignal(Signal),
    /// Write these credentials, compare-and-swap on the version that was read: the token of a deployment that
    /// makes progress is renewed. A conflict is left to the next pass.
    RenewToken(Box<Credentials>),
    /// Forget which run this host was powered for: its claim has ended.
    ForgetBoot,
    /// Append to the host's history. Failing, it is logged and the pass goes on.
    Record(HistoryEntry),
}

/// What comes out of a pass over a host.
#[derive(Clone, Debug, PartialEq)]
pub struct HostDecision {
    /// The next status; written where [`HostEffect::WriteStatus`] stands, and only then.
    pub status: PhysicalHostStatus,
    /// What to do, in order.
    pub effects: Vec<HostEffect>,
    /// When to look again at the latest, if nothing wakes the host before.
    pub requeue: Duration,
    /// Ask the BMC at once, not only when it is due: the next state depends on it.
    pub ask_bmc_now: bool,
    /// For the log, at info; never a secret.
    pub notes: Vec<String>,
}

impl HostDecision {
    fn only(facts: &HostFacts<'_>, effects: Vec<HostEffect>, requeue: Duration) -> Self {
        let status = facts.host.status.clone();
        Self { status, effects, requeue, ask_bmc_now: false, notes: Vec::new() }
    }
}

/// Decides one pass over a host.
///
/// The order is the contract's: pause, deletion, finalizer, adoption; then the agent's reports, failure before
/// success; then requests; then the inspection result; then the BMC; then deadlines; then the claim. What a
/// release or another boot has left behind goes before all that reads it.
pub fn decide_host(facts: &HostFacts<'_>) -> HostDecision {
    let (host, timings) = (facts.host, facts.clock.timings);
    if host.metadata.is_paused() {
        return HostDecision::only(facts, Vec::new(), timings.healthy);
    }
    if host.metadata.deletion_timestamp.is_some() {
        return decide_deletion(facts);
    }
    if !host.metadata.finalizers.iter().any(|f| f == HOST_FINALIZER) {
        return HostDecision::only(facts, vec![HostEffect::AddFinalizer], timings.soon);
    }
    let mut pass = Pass::new(facts);
    pass.repair_conditions();
    pass.clear_released();
    pass.leave_replaced_run();
    pass.adopt();
    pass.weigh_provision_failed();
    pass.weigh_provisioned();
    pass.weigh_request();
    pass.mirror_credentials();
    pass.take_report();
    pass.observe_bmc();
    pass.check_deadlines();
    pass.settle_claim();
    pass.renew_token();
    pass.finish()
}

/// A host object is let go at once: no BMC, no waiting.
fn decide_deletion(facts: &HostFacts<'_>) -> HostDecision {
    let host = facts.host;
    let mut effects = Vec::new();
    if let Some(consumer) = &host.spec.consumer_ref {
        effects.push(HostEffect::Record(HistoryEntry {
            at: facts.clock.now,
            actor: "operator".to_owned(),
            event: "DeletingClaimedHost".to_owned(),
            from: host.status.state.as_str().to_owned(),
            to: String::new(),
            reason: format!("the host is deleted while {} {:?} claims it", consumer.kind, consumer.name),
            run: host.status.run.clone(),
        }));
    }
    if host.metadata.finalizers.iter().any(|f| f == HOST_FINALIZER) {
        effects.push(HostEffect::RemoveFinalizer);
    }
    effects.push(HostEffect::ForgetBoot);
    HostDecision::only(facts, effects, facts.clock.timings.healthy)
}

/// Whether the claiming machine stands still by the operator's wish; its host's deadlines stand still too.
pub(super) fn consumer_paused(facts: &HostFacts<'_>) -> bool {
    host_view::is_claimed(facts.host)
        && matches!(facts.consumer, ConsumerRead::Found(machine) if machine.metadata.is_paused())
}
