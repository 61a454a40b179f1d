//! A machine without a host: pinning its image's digest, then claiming.

use super::claim::{self, NoHost};
use super::machine::{DigestRead, MachineDecision, MachineEffect, MachineFacts, OwnerRead};
use super::machine_status::Draft;
use super::reasons;
use crate::contract::digest::Digest;
use crate::contract::web_url::WebUrl;
use crate::resource::HostState;
use crate::resource::condition::{self, Truth};
use crate::resource::machine::MachinePhase;

/// What there is to do about the digest before anything else.
pub(super) enum DigestStep {
    /// The digest stands in the spec: a pin from earlier goes.
    DropPin,
    /// The checksum file told it: write it down, then go on from a fresh read.
    Pin(WebUrl, Digest),
    /// Fetch it.
    Fetch(WebUrl),
    /// Fetching failed.
    Wait(String, std::time::Duration),
}

/// The next step, if any. A machine that is installed needs no digest; one that has a host keeps the one it
/// was pinned with, whatever its spec says now.
pub(super) fn pin_digest(facts: &MachineFacts<'_>) -> Option<DigestStep> {
    let (spec, status) = (&facts.machine.spec, &facts.machine.status);
    if spec.provider_id.is_some() {
        return None;
    }
    let pinned = status.target_image_digest.is_some();
    if spec.target_image_digest.is_some() {
        return (pinned || status.target_image_digest_url.is_some()).then_some(DigestStep::DropPin);
    }
    let url = spec.target_image_digest_url.as_ref()?;
    let unchanged = status.target_image_digest_url.as_ref() == Some(url);
    if pinned && (unchanged || facts.host().is_some()) {
        return None;
    }
    // A run under way was booted with what it has; its deadlines must not wait for a checksum file.
    if facts.host().is_some_and(|h| h.status.state != HostState::InUse) {
        return None;
    }
    Some(match facts.digest {
        DigestRead::Resolved { url: from, digest } if from == url => DigestStep::Pin(url.clone(), *digest),
        DigestRead::Failed { message, retry_in } => DigestStep::Wait(message.clone(), *retry_in),
        DigestRead::Unknown | DigestRead::Resolved { .. } => DigestStep::Fetch(url.clone()),
    })
}

pub(super) fn apply_digest_step(
    facts: &MachineFacts<'_>,
    mut draft: Draft,
    step: DigestStep,
) -> MachineDecision {
    let timings = facts.clock.timings;
    let waiting = reasons::WAITING_FOR_TARGET_IMAGE_DIGEST;
    match step {
        DigestStep::DropPin => {
            draft.status.target_image_digest = None;
            draft.status.target_image_digest_url = None;
            draft.decide(Vec::new(), Vec::new(), timings.soon)
        }
        DigestStep::Pin(url, digest) => {
            draft.status.target_image_digest = Some(digest);
            draft.status.target_image_digest_url = Some(url);
            // What was waited for is over, and there may be no host for a long time.
            let text = match facts.host() {
                Some(_) => "The host is claimed and not installed yet",
                None => "The image's digest is known, a host is looked for",
            };
            draft.not_ready(reasons::PHYSICAL_HOST_NOT_READY, text);
            draft.decide(Vec::new(), Vec::new(), timings.soon)
        }
        DigestStep::Fetch(url) => {
            draft.not_ready(waiting, "The checksum file is being fetched");
            draft.decide(Vec::new(), vec![MachineEffect::ResolveDigest(url)], timings.soon)
        }
        DigestStep::Wait(message, retry_in) => {
            draft.not_ready(waiting, &message);
            draft.decide(Vec::new(), Vec::new(), retry_in.max(timings.soon))
        }
    }
}

/// Claims a host, or says why there is none.
pub(super) fn decide(facts: &MachineFacts<'_>, mut draft: Draft) -> MachineDecision {
    let timings = facts.clock.timings;
    let associated = reasons::PHYSICAL_HOST_ASSOCIATED;
    if let Some(id) = &facts.machine.spec.provider_id {
        // It was installed once; another host is not its host, and its own may hold something else by now.
        let text = format!("Host {} is not claimed by this machine", id.host());
        draft.set(associated, Truth::False, reasons::PHYSICAL_HOST_ASSOCIATION_FAILED, &text);
        return draft.decide(Vec::new(), Vec::new(), timings.machine_poll);
    }
    let failure_domain = match facts.owner {
        OwnerRead::Owned { failure_domain, .. } => failure_domain,
        OwnerRead::Standalone | OwnerRead::Missing => None,
    };
    match claim::choose(facts.machine, failure_domain, facts.hosts) {
        Ok(host) => {
            let key = host.metadata.key();
            draft.set(associated, Truth::True, associated, &format!("Host {key} is claimed"));
            draft.not_ready(reasons::PHYSICAL_HOST_NOT_READY, "The host is claimed and not installed yet");
            draft.phase(MachinePhase::Pending);
            draft.decide(vec![MachineEffect::Claim(key)], Vec::new(), timings.claimed)
        }
        Err(error) => no_host(facts, draft, &error),
    }
}

fn no_host(facts: &MachineFacts<'_>, mut draft: Draft, error: &NoHost) -> MachineDecision {
    let timings = facts.clock.timings;
    let message = error.to_string();
    let associated = reasons::PHYSICAL_HOST_ASSOCIATED;
    // Whatever was waited for before, it is a host by now. Where nothing was, the condition begins with the claim.
    if condition::get(&draft.status.conditions, reasons::INFRASTRUCTURE_READY).is_some() {
        draft.not_ready(reasons::PHYSICAL_HOST_NOT_READY, &message);
    }
    match error {
        NoHost::Selector(_) => {
            draft.set(associated, Truth::False, reasons::INVALID_HOST_SELECTOR, &message);
            draft.fail(reasons::INVALID_HOST_SELECTOR, &message);
            draft.decide(Vec::new(), Vec::new(), timings.healthy)
        }
        NoHost::FailureDomain { .. } => {
            draft.set(associated, Truth::False, reasons::PHYSICAL_HOST_ASSOCIATION_FAILED, &message);
            let decision = draft.decide(Vec::new(), Vec::new(), timings.no_host);
            MachineDecision { error: Some(message), ..decision }
        }
        NoHost::NoneFree | NoHost::NoneMatches { .. } => {
            let none_free = *error == NoHost::NoneFree;
            let reason = if none_free {
                reasons::WAITING_FOR_PHYSICAL_HOST
            } else {
                reasons::NO_MATCHING_PHYSICAL_HOST
            };
            draft.set(associated, Truth::False, reason, &message);
            draft.phase(MachinePhase::Pending);
            draft.decide(Vec::new(), Vec::new(), timings.no_host)
        }
    }
}
