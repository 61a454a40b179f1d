//! Which host a machine has, and which it may claim.

use super::host_view;
use super::selector::{Selector, SelectorError, is_label_value};
use crate::resource::{API_VERSION, Beskar7Machine, HostState, ObjectReference, PhysicalHost, Resource as _};

/// Label that names a host's failure domain.
pub const ZONE_LABEL: &str = "topology.kubernetes.io/zone";

/// The host this machine has: the one its provider id names if that is claimed by it, else the one whose claim
/// names it.
pub fn claimed_host<'h>(machine: &Beskar7Machine, hosts: &'h [PhysicalHost]) -> Option<&'h PhysicalHost> {
    let ours = || hosts.iter().filter(|h| host_view::is_claimed_by(h, machine));
    let by_id =
        machine.spec.provider_id.as_ref().and_then(|id| ours().find(|h| h.metadata.key() == *id.host()));
    by_id.or_else(|| ours().next())
}

/// The reference a claim writes into the host's `spec.consumerRef`.
pub fn reference_to(machine: &Beskar7Machine) -> ObjectReference {
    ObjectReference {
        kind: Beskar7Machine::KIND.to_owned(),
        api_version: API_VERSION.to_owned(),
        name: machine.metadata.name.as_str().to_owned(),
        namespace: machine.metadata.namespace.as_str().to_owned(),
        uid: machine.metadata.uid.clone(),
    }
}

/// Why no host can be claimed now.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoHost {
    /// No host of the namespace is free.
    #[error("no host is free; add one, or release one")]
    NoneFree,
    /// Some are free, but none that this machine may have.
    #[error("hosts are free, but none that {constraint}")]
    NoneMatches {
        /// What the machine asks of a host.
        constraint: String,
    },
    /// The selector cannot be understood: terminal.
    #[error(transparent)]
    Selector(#[from] SelectorError),
    /// The failure domain can be no label value, so no host can ever have it.
    #[error("failure domain {found:?} is not a valid label value")]
    FailureDomain {
        /// What was given, cut to a printable length.
        found: String,
    },
}

/// Whether a machine may claim this host at all: `Available`, without a claim, neither paused nor being deleted.
pub fn is_free(host: &PhysicalHost) -> bool {
    host.status.state == HostState::Available
        && !host_view::is_claimed(host)
        && host.metadata.deletion_timestamp.is_none()
        && !host.metadata.is_paused()
}

/// The first [free](is_free) host this machine may claim, in the order given.
///
/// Constraints are the pinned name, the selector and the failure domain; placement never falls back to a host
/// outside them.
///
/// # Errors
/// [`NoHost`].
pub fn choose<'h>(
    machine: &Beskar7Machine,
    failure_domain: Option<&str>,
    hosts: &'h [PhysicalHost],
) -> Result<&'h PhysicalHost, NoHost> {
    let selector = machine.spec.host_selector.as_ref().map(Selector::parse).transpose()?;
    if let Some(zone) = failure_domain.filter(|zone| !is_label_value(zone)) {
        return Err(NoHost::FailureDomain { found: zone.chars().take(64).collect() });
    }
    let free = |h: &&PhysicalHost| h.metadata.namespace == machine.metadata.namespace && is_free(h);
    let wanted = |h: &&PhysicalHost| {
        machine.spec.host_name.as_ref().is_none_or(|name| *name == h.metadata.name)
            && selector.as_ref().is_none_or(|s| s.matches(&h.metadata.labels))
            && failure_domain.is_none_or(|zone| h.metadata.labels.get(ZONE_LABEL).is_some_and(|z| z == zone))
    };
    if let Some(host) = hosts.iter().filter(free).find(wanted) {
        return Ok(host);
    }
    let constraint = constraint_text(machine, failure_domain);
    match constraint {
        Some(constraint) if hosts.iter().any(|h| free(&h)) || machine.spec.host_name.is_some() => {
            Err(NoHost::NoneMatches { constraint })
        }
        _ => Err(NoHost::NoneFree),
    }
}

fn constraint_text(machine: &Beskar7Machine, failure_domain: Option<&str>) -> Option<String> {
    let name = machine.spec.host_name.as_ref().map(|name| format!("is named {name}"));
    let selector = machine.spec.host_selector.as_ref().map(|_| "matches hostSelector".to_owned());
    let zone = failure_domain.map(|zone| format!("is in failure domain {zone}"));
    let parts: Vec<String> = [name, selector, zone].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(" and "))
}
