//! What to change in the firmware's boot entries: decided over plain data.

use std::collections::BTreeSet;

use farrier_shared::contract::options::EfiBoot;

use super::load_option::LoadOption;
use super::{EfiError, LABEL, device_path};

/// One `Boot####`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) number: u16,
    pub(super) bytes: Vec<u8>,
}

/// What the firmware has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct State {
    pub(super) entries: Vec<Entry>,
    pub(super) order: Vec<u16>,
    /// What this system was booted with.
    pub(super) current: Option<u16>,
}

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// The number our entry has, or gets.
    pub(super) number: u16,
    pub(super) remove: Vec<u16>,
    /// The entry, unless it is there already.
    pub(super) write: Option<Vec<u8>>,
    /// The boot order, unless it is right already.
    pub(super) order: Option<Vec<u16>>,
}

/// How to come from `state` to one entry `wanted` in the place that `policy` gives it.
///
/// Removed are entries that lead to the same file of the same partition, and those of ours that lead elsewhere: what
/// they were made for is no longer installed. All others stay as they are, in their order.
///
/// # Errors
/// [`EfiError::Full`].
pub(super) fn plan(state: &State, wanted: &[u8], policy: EfiBoot) -> Result<Plan, EfiError> {
    let target = LoadOption::decode(wanted).and_then(|option| device_path::file_on_partition(option.path));
    let kept = state.entries.iter().find(|entry| entry.bytes == wanted).map(|entry| entry.number);
    let replaced = |entry: &&Entry| {
        let Some(option) = LoadOption::decode(&entry.bytes) else { return false };
        option.description == LABEL
            || (target.is_some() && device_path::file_on_partition(option.path) == target)
    };
    let remove: Vec<u16> = state
        .entries
        .iter()
        .filter(|entry| Some(entry.number) != kept)
        .filter(replaced)
        .map(|entry| entry.number)
        .collect();
    let number = match kept {
        Some(number) => number,
        None => free_number(state, &remove)?,
    };
    let order = order(state, number, &remove, policy);
    Ok(Plan {
        number,
        write: kept.is_none().then(|| wanted.to_vec()),
        order: (order != state.order).then_some(order),
        remove,
    })
}

/// The lowest that neither an entry nor the boot order has. A removed one's will do.
fn free_number(state: &State, removed: &[u16]) -> Result<u16, EfiError> {
    let entries = state.entries.iter().map(|entry| entry.number);
    let mut taken: BTreeSet<u16> = entries.chain(state.order.iter().copied()).collect();
    for number in removed {
        taken.remove(number);
    }
    (0..=u16::MAX).find(|number| !taken.contains(number)).ok_or(EfiError::Full)
}

fn order(state: &State, own: u16, removed: &[u16], policy: EfiBoot) -> Vec<u16> {
    let mut seen = BTreeSet::new();
    let others: Vec<u16> = state
        .order
        .iter()
        .copied()
        .filter(|number| *number != own && !removed.contains(number) && seen.insert(*number))
        .collect();
    let (ahead, behind): (Vec<u16>, Vec<u16>) = match policy {
        EfiBoot::DiskFirst => (Vec::new(), others),
        EfiBoot::NetworkFirst | EfiBoot::Off => {
            others.into_iter().partition(|number| is_network(state, *number))
        }
    };
    [ahead, vec![own], behind].concat()
}

/// Words that firmware names its network entries with where their device path is a vendor's own.
const NETWORK_WORDS: [&str; 6] = ["pxe", "network", "http boot", "ipv4", "ipv6", "nic "];

/// Whether the entry boots from a network: by its device path, else its name; and the one that booted this system,
/// which came over the network, unless it names a medium.
fn is_network(state: &State, number: u16) -> bool {
    let entry = state.entries.iter().find(|entry| entry.number == number);
    let Some(option) = entry.and_then(|entry| LoadOption::decode(&entry.bytes)) else { return false };
    if device_path::is_network(option.path) {
        return true;
    }
    if device_path::is_medium(option.path) {
        return false;
    }
    let name = option.description.to_ascii_lowercase();
    state.current == Some(number) || NETWORK_WORDS.iter().any(|word| name.contains(word))
}
