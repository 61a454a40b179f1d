//! A machine that is being deleted: its host is let go, then it goes.

use super::history::HistoryEntry;
use super::machine::{
    DELETE_FOR_MOVE, FORCE_RELEASE, MACHINE_FINALIZER, MachineDecision, MachineEffect, MachineFacts,
    PowerAction,
};
use super::machine_status::Draft;
use crate::resource::{HostState, PhysicalHost};

/// Lets go of a host that an earlier machine of this name left behind, as if that one were deleted.
pub(super) fn let_go(facts: &MachineFacts<'_>, host: &PhysicalHost, draft: Draft) -> MachineDecision {
    let effects = release(facts, host, false, "left by an earlier machine of the same name");
    let untouched = draft.untouched(facts.clock.timings.soon);
    MachineDecision { effects, ..untouched }
}

fn release(facts: &MachineFacts<'_>, host: &PhysicalHost, forced: bool, why: &str) -> Vec<MachineEffect> {
    let key = host.metadata.key();
    let mut effects = Vec::new();
    // A release goes through on a paused host too, but nothing is done to its server.
    let paused = host.metadata.is_paused();
    if !forced && !paused {
        effects.push(MachineEffect::ClearBootOverride(key.clone()));
        effects.push(MachineEffect::Power { host: key.clone(), action: power_off(host.status.state) });
    }
    effects.push(MachineEffect::Release(key.clone()));
    let entry = HistoryEntry {
        at: facts.clock.now,
        actor: "machine".to_owned(),
        event: if forced { "ForceReleased" } else { "Released" }.to_owned(),
        from: host.status.state.as_str().to_owned(),
        to: host.status.state.as_str().to_owned(),
        reason: if paused {
            format!("{why}; the host is paused, its power stays as it is")
        } else {
            why.to_owned()
        },
        run: host.status.run.clone(),
    };
    effects.push(MachineEffect::Record { host: key, entry });
    effects
}

/// Decides the pass. Nothing about the BMC holds a release up: an operator must be able to get rid of a
/// machine whose server is broken.
pub(super) fn decide(facts: &MachineFacts<'_>, draft: Draft) -> MachineDecision {
    let metadata = &facts.machine.metadata;
    let timings = facts.clock.timings;
    let mut effects = Vec::new();
    let moved = metadata.annotations.contains_key(DELETE_FOR_MOVE);
    if let Some(host) = facts.host().filter(|_| !moved) {
        let forced = metadata.annotations.get(FORCE_RELEASE).is_some_and(|v| v == "true");
        effects = release(facts, host, forced, &format!("machine {} is deleted", metadata.name));
    }
    if metadata.finalizers.iter().any(|f| f == MACHINE_FINALIZER) {
        effects.push(MachineEffect::RemoveFinalizer);
    }
    let untouched = draft.untouched(timings.healthy);
    MachineDecision { effects, ..untouched }
}

/// The inspection image does not listen to a polite request; an installed system does.
fn power_off(state: HostState) -> PowerAction {
    match state {
        HostState::Inspecting | HostState::Deploying | HostState::Error => PowerAction::ForceOff,
        _ => PowerAction::GracefulShutdown,
    }
}
