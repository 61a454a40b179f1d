//! Has a UEFI machine's firmware boot what was installed: one boot entry, in its place in the boot order.
//!
//! An image boots without it, through the firmware's fallback path on removable media; but that comes last, after
//! every entry an earlier system left. What fails here is told and never fails a run.
//!
//! `BootNext` is not touched: it is how one-time overrides of BMCs work on many boards, and the next start is the
//! boot order's in any case. Since the order keeps network entries ahead by default, a machine whose firmware
//! ignores the override can still be had back through the network.

mod device_path;
mod error;
mod esp;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod load_option;
mod plan;
mod variables;

#[cfg(test)]
mod tests;

pub use error::EfiError;
pub use esp::Esp;
pub use variables::{Efivarfs, Variables};

use std::path::Path;

use farrier_shared::contract::options::EfiBoot;

use crate::disk::Target;
use load_option::LoadOption;
use plan::{Entry, Plan, State, plan};

/// What our entries are called; those of the name that are not this one are removed.
const LABEL: &str = "Farrier";
/// Most boot entries looked at: a board has room for a few dozen.
const MAX_ENTRIES: usize = 1024;

/// What was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Not a UEFI machine, or not asked for.
    Untouched,
    /// There already was such an entry in that place.
    AsWanted {
        /// Number of the entry.
        number: u16,
    },
    /// The variables were changed.
    Changed {
        /// Number of the entry.
        number: u16,
        /// Entries that were removed.
        removed: usize,
        /// The boot order now.
        order: Vec<u16>,
    },
}

/// Makes the boot entry of the system on `target`; `work` is a writable directory on a tmpfs.
///
/// # Errors
/// When the disk has no EFI system partition or boot loader, or the firmware does not keep the variables.
pub fn boot_from(
    target: &dyn Target,
    policy: EfiBoot,
    root: &Path,
    work: &Path,
) -> Result<Outcome, EfiError> {
    let firmware = root.join("sys/firmware/efi");
    if policy == EfiBoot::Off || !firmware.exists() {
        return Ok(Outcome::Untouched);
    }
    let esp = Esp::find(target)?;
    let loader = esp.loader(target, work, esp::Machine::of(&firmware))?;
    make_entry(&Efivarfs::at(firmware.join("efivars")), &esp, &loader, policy)
}

/// Has the variables hold an entry for this loader. Doing it twice changes nothing the second time.
///
/// # Errors
/// When they cannot be read, or do not keep what is written.
pub fn make_entry(
    variables: &dyn Variables,
    esp: &Esp,
    loader: &str,
    policy: EfiBoot,
) -> Result<Outcome, EfiError> {
    let path = device_path::to_file(esp, loader);
    let wanted = LoadOption { active: true, description: LABEL.to_owned(), path: &path }.encode();
    let state = read_state(variables)?;
    let Plan { number, remove, write, order } = plan(&state, &wanted, policy)?;
    if remove.is_empty() && write.is_none() && order.is_none() {
        return Ok(Outcome::AsWanted { number });
    }
    // Removed first: some firmware refuses a new entry that is the twin of one it still has.
    for old in &remove {
        let name = entry_name(*old);
        variables.remove(&name).map_err(|source| EfiError::Variable { action: "remove", name, source })?;
    }
    if let Some(bytes) = write {
        store(variables, &entry_name(number), &bytes)?;
    }
    let order = match order {
        Some(order) => {
            let bytes: Vec<u8> = order.iter().flat_map(|n| n.to_le_bytes()).collect();
            store(variables, "BootOrder", &bytes)?;
            order
        }
        None => state.order,
    };
    Ok(Outcome::Changed { number, removed: remove.len(), order })
}

/// Writes a variable and reads it back: firmware whose store is full or locked may answer well and keep nothing.
fn store(variables: &dyn Variables, name: &str, bytes: &[u8]) -> Result<(), EfiError> {
    let failed = |action| {
        let name = name.to_owned();
        move |source| EfiError::Variable { action, name, source }
    };
    variables.write(name, bytes).map_err(failed("write"))?;
    if variables.read(name).map_err(failed("read back"))?.as_deref() == Some(bytes) {
        return Ok(());
    }
    Err(EfiError::NotKept { name: name.to_owned() })
}

fn read_state(variables: &dyn Variables) -> Result<State, EfiError> {
    let failed = |name: &str| {
        let name = name.to_owned();
        move |source| EfiError::Variable { action: "read", name, source }
    };
    let words = |name: &str| -> Result<Vec<u16>, EfiError> {
        let bytes = variables.read(name).map_err(failed(name))?.unwrap_or_default();
        Ok(bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect())
    };
    let names = variables.names().map_err(failed("the list of variables"))?;
    let mut numbers: Vec<u16> =
        names.iter().filter_map(|name| entry_number(name)).take(MAX_ENTRIES).collect();
    numbers.sort_unstable();
    let mut entries = Vec::new();
    for number in numbers {
        let name = entry_name(number);
        // One that cannot be read is left alone; its number stays taken.
        let bytes = variables.read(&name).ok().flatten().unwrap_or_default();
        entries.push(Entry { number, bytes });
    }
    Ok(State { entries, order: words("BootOrder")?, current: words("BootCurrent")?.first().copied() })
}

/// `Boot0001`: four upper-case hex digits (UEFI specification 2.10, section 3.3).
fn entry_name(number: u16) -> String {
    format!("Boot{number:04X}")
}

fn entry_number(name: &str) -> Option<u16> {
    let digits = name.strip_prefix("Boot").filter(|d| d.len() == 4)?;
    let is_hex = digits.bytes().all(|b| b.is_ascii_digit() || (b'A'..=b'F').contains(&b));
    is_hex.then(|| u16::from_str_radix(digits, 16).ok()).flatten()
}
