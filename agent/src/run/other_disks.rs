//! A look at the disks that are not written: what an earlier system left there can take the new one's place.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::afterwards::warn;
use super::deadline::blocking;
use super::{Contact, Failure};
use crate::disk::{Access, Disk, Inventory, KernelTarget, Refusal, Roots, Target};
use crate::facts::{self, Facts};

/// Most disks looked at: a few MiB are read of each.
const DISKS: usize = 64;
/// How long it may take. A disk that takes longer is ill, and no reason to wait.
const WAIT: Duration = Duration::from_secs(60);

/// Adds a note to the report for each disk with members of arrays, volume groups or pools.
pub(super) async fn note_members(facts: &mut Facts, root: &Path) {
    let (disks, roots) = (readable(&facts.disks), facts::roots(root));
    let looked = blocking("other disks", WAIT, move || inventories(&disks, &roots)).await;
    let notes: Vec<String> = match looked {
        Ok(all) => all.iter().filter_map(Inventory::members).collect(),
        Err(Failure { cause, .. }) => vec![format!("disks not looked into: {cause}")],
    };
    let list =
        facts.report.farrier.as_mut().and_then(|own| own.get_mut("notes")).and_then(Value::as_array_mut);
    if let Some(list) = list {
        list.extend(notes.into_iter().map(Value::String));
    }
}

/// Warns of disks beside the target that repeat what was just installed, or hold members.
pub(super) async fn compare(contact: &Contact, target: &Arc<dyn Target>, disks: &[Disk], root: &Path) {
    let name = target.name().to_owned();
    let is_target = |disk: &Disk| disk.path.display().to_string() == name;
    let others: Vec<Disk> = readable(disks).into_iter().filter(|disk| !is_target(disk)).collect();
    let (target, roots) = (Arc::clone(target), facts::roots(root));
    let looked = blocking("other disks", WAIT, move || {
        let installed = target.open(Access::Shared).and_then(|device| Inventory::take(&*device));
        let installed = installed.unwrap_or_else(|error| {
            tracing::warn!(%error, "the installed disk was not compared with others");
            Inventory::default()
        });
        let all = inventories(&others, &roots);
        all.iter()
            .flat_map(|other| [other.repeats(&installed), other.members()])
            .flatten()
            .collect::<Vec<String>>()
    });
    match looked.await {
        Ok(warnings) => warnings.iter().for_each(|text| warn(contact, text)),
        Err(failure) => warn(contact, &format!("other disks were not looked at: {failure}")),
    }
}

/// Disks of the machine, each once; no removable ones, which may have an empty or a slow drive around them.
fn readable(disks: &[Disk]) -> Vec<Disk> {
    let fixed = disks.iter().filter(|disk| {
        disk.size > 0 && matches!(disk.refusal, None | Some(Refusal::ReadOnly | Refusal::InUse { .. }))
    });
    fixed.take(DISKS).cloned().collect()
}

fn inventories(disks: &[Disk], roots: &Roots) -> Vec<Inventory> {
    let look = |disk: &Disk| {
        let target = KernelTarget::new(disk.clone(), roots.clone());
        let taken = target.open(Access::Shared).and_then(|device| Inventory::take(&*device));
        taken.inspect_err(|error| tracing::info!(%error, "disk not looked into")).ok()
    };
    disks.iter().filter_map(look).collect()
}
