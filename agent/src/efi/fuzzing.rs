//! Boot entries as firmware keeps them.

use std::collections::BTreeMap;

use farrier_shared::contract::options::EfiBoot;

use super::load_option::LoadOption;
use super::plan::{Entry, Plan, State, plan};
use super::{Esp, LABEL, device_path};

/// Firmware's variables: a policy, the current entry, a boot order led by its length, and entries, each led by its
/// number and length. What is planned for them leaves nothing to be planned.
pub fn boot_entries(bytes: &[u8]) {
    let Some((&[policy, low, high, ordered], rest)) = bytes.split_first_chunk::<4>() else { return };
    let policy = if policy & 1 == 0 { EfiBoot::NetworkFirst } else { EfiBoot::DiskFirst };
    let (order, mut rest) = rest.split_at((usize::from(ordered) * 2).min(rest.len()));
    let order = order.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect();
    let mut entries = BTreeMap::new();
    while let Some((&[low, high, len], tail)) = rest.split_first_chunk::<3>() {
        let (content, next) = tail.split_at(usize::from(len).min(tail.len()));
        entries.insert(u16::from_le_bytes([low, high]), content.to_vec());
        rest = next;
    }
    let entries = entries.into_iter().map(|(number, bytes)| Entry { number, bytes }).collect();
    let state = State { entries, order, current: Some(u16::from_le_bytes([low, high])) };

    let esp = Esp { number: 1, start: 2048, sectors: 6144, guid: [7; 16] };
    let path = device_path::to_file(&esp, "\\EFI\\BOOT\\BOOTX64.EFI");
    let wanted = LoadOption { active: true, description: LABEL.to_owned(), path: &path }.encode();
    let Ok(first) = plan(&state, &wanted, policy) else { return };
    let state = carry_out(state, &first);
    let again = plan(&state, &wanted, policy);
    assert_eq!(again.ok(), Some(Plan { number: first.number, remove: vec![], write: None, order: None }));
}

fn carry_out(mut state: State, plan: &Plan) -> State {
    state.entries.retain(|entry| !plan.remove.contains(&entry.number));
    if let Some(bytes) = plan.write.clone() {
        state.entries.push(Entry { number: plan.number, bytes });
    }
    State { order: plan.order.clone().unwrap_or(state.order), ..state }
}
