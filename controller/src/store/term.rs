//! What objects can be found by besides their key, so that no pass reads everything to find something.
//!
//! A term is a plain text that follows from the object alone. The backend keeps the terms of each object with it,
//! in the same transaction; where there are no transactions a watch keeps them, and a term found there is a hint
//! that the reader checks against the object, as every reader here does anyway.

use std::any::Any;
use std::fmt;

use farrier_shared::contract::{MacAddress, Name};
use farrier_shared::lifecycle::host_view;
use farrier_shared::resource::{Beskar7Machine, MachinePhase, PhysicalHost};

/// Something an object can be found by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Term<'a> {
    /// Hosts that boot from this address: those declared, else those the host itself reported.
    BootsFrom(MacAddress),
    /// Hosts whose BMC is reached with this Secret; machines whose user-data it is.
    Uses(&'a Name),
    /// Hosts that this machine has claimed.
    ClaimedBy(&'a Name),
    /// Machines that look for a host and would take any, or any that their selector takes.
    Waiting,
    /// Machines that want this host and no other, whether they have it or not.
    Wants(&'a Name),
}

impl fmt::Display for Term<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BootsFrom(mac) => write!(f, "boots-from={mac}"),
            Self::Uses(secret) => write!(f, "uses={secret}"),
            Self::ClaimedBy(machine) => write!(f, "claimed-by={machine}"),
            Self::Waiting => f.write_str("waiting"),
            Self::Wants(host) => write!(f, "wants={host}"),
        }
    }
}

/// All terms of an object, sorted.
pub(super) fn of(object: &dyn Any) -> Vec<String> {
    let mut terms = if let Some(host) = object.downcast_ref() {
        of_host(host)
    } else if let Some(machine) = object.downcast_ref() {
        of_machine(machine)
    } else {
        Vec::new()
    };
    terms.sort_unstable();
    terms.dedup();
    terms
}

fn of_host(host: &PhysicalHost) -> Vec<String> {
    let connection = &host.spec.redfish_connection;
    let mut terms = vec![Term::Uses(&connection.credentials_secret_ref).to_string()];
    terms.extend(connection.ca_bundle_secret_ref.as_ref().map(|ca| Term::Uses(ca).to_string()));
    terms.extend(host_view::consumer(host).map(|machine| Term::ClaimedBy(&machine).to_string()));
    terms.extend(boot_addresses(host).into_iter().map(|mac| Term::BootsFrom(mac).to_string()));
    terms
}

/// Declared addresses decide; where none are declared, those the host itself last reported.
fn boot_addresses(host: &PhysicalHost) -> Vec<MacAddress> {
    if !host.spec.boot_mac_addresses.is_empty() {
        return host.spec.boot_mac_addresses.clone();
    }
    let nics = host.status.inspection_report.iter().flat_map(|report| &report.nics);
    nics.filter_map(|nic| nic.mac_address.to_ascii_lowercase().parse().ok()).collect()
}

/// Whether the machine has no host yet, as far as it tells.
pub(crate) fn looks_for_host(machine: &Beskar7Machine) -> bool {
    machine.spec.provider_id.is_none() && matches!(machine.status.phase, None | Some(MachinePhase::Pending))
}

fn of_machine(machine: &Beskar7Machine) -> Vec<String> {
    let mut terms = Vec::new();
    if let Some(bootstrap) = &machine.spec.bootstrap {
        terms.push(Term::Uses(&bootstrap.data_secret_name).to_string());
    }
    match &machine.spec.host_name {
        Some(host) => terms.push(Term::Wants(host).to_string()),
        None if looks_for_host(machine) => terms.push(Term::Waiting.to_string()),
        None => {}
    }
    terms
}
