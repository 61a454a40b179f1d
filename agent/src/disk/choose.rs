//! Which disk to write: the operator's pin, which never falls back, or the smallest that is large enough.

use std::fs;
use std::path::Path;

use farrier_shared::contract::DiskPin;

use super::{Disk, DiskError, Roots};

/// The disk to write: the pinned one, else the smallest eligible of at least `required` bytes, the first by
/// name when two are equal. `required` is 0 when the size of the image is not known yet.
///
/// # Errors
/// When the pin names nothing, or something that must not be written, or nothing is eligible.
pub fn choose(
    disks: &[Disk],
    pin: Option<&DiskPin>,
    required: u64,
    roots: &Roots,
) -> Result<Disk, DiskError> {
    match pin {
        Some(pin) => pinned(disks, pin.as_str(), required, roots),
        None => disks
            .iter()
            .filter(|disk| disk.refusal.is_none() && disk.size >= required)
            .min_by(|a, b| (a.size, &a.name).cmp(&(b.size, &b.name)))
            .cloned()
            .ok_or_else(|| DiskError::NoneEligible { required, found: list(disks) }),
    }
}

fn pinned(disks: &[Disk], pin: &str, required: u64, roots: &Roots) -> Result<Disk, DiskError> {
    let disk = resolve(disks, pin, roots)?;
    let pin = pin.to_owned();
    if let Some(refusal) = &disk.refusal {
        return Err(DiskError::Ineligible { pin, refusal: refusal.clone() });
    }
    if disk.size < required {
        return Err(DiskError::TooSmall { pin, size: disk.size, required });
    }
    Ok(disk.clone())
}

/// The device a pin names: by a link worked out from its identity, a link that exists, or its kernel name.
fn resolve<'a>(disks: &'a [Disk], pin: &str, roots: &Roots) -> Result<&'a Disk, DiskError> {
    let below_dev = pin.strip_prefix("/dev/").unwrap_or(pin);
    if let Some(link) = below_dev.strip_prefix("disk/") {
        let carries = |link: &str| disks.iter().find(|disk| disk.identity.links.iter().any(|l| l == link));
        if let Some(disk) = carries(link) {
            return Ok(disk);
        }
        if link.rsplit_once("-part").is_some_and(|(whole, number)| {
            number.bytes().all(|b| b.is_ascii_digit()) && carries(whole).is_some()
        }) {
            return Err(DiskError::Partition { pin: pin.to_owned() });
        }
    }
    let path = if pin.starts_with('/') && !pin.starts_with("/dev/") {
        Path::new(pin).to_path_buf()
    } else {
        roots.dev.join(below_dev)
    };
    let real = fs::canonicalize(&path);
    let dev = fs::canonicalize(&roots.dev).unwrap_or_else(|_| roots.dev.clone());
    let target = real.as_deref().unwrap_or(&path);
    // A kernel name holding a slash is shown by sysfs with an exclamation mark.
    let name = target
        .strip_prefix(&dev)
        .or_else(|_| target.strip_prefix(&roots.dev))
        .map(|name| name.to_string_lossy().replace('/', "!"))
        .unwrap_or_default();
    if let Some(disk) = disks.iter().find(|disk| disk.name == name) {
        return Ok(disk);
    }
    let pin = pin.to_owned();
    if !name.is_empty() && disks.iter().any(|d| roots.block(&d.name).join(&name).join("partition").exists()) {
        Err(DiskError::Partition { pin })
    } else if real.is_ok() {
        Err(DiskError::NotBlockDevice { pin })
    } else {
        Err(DiskError::NotFound { pin, found: list(disks) })
    }
}

/// The disks in a few words, for an operator who has to pick another.
fn list(disks: &[Disk]) -> String {
    let real = disks.iter().filter(|disk| disk.refusal != Some(super::Refusal::Virtual));
    let words: Vec<String> = real
        .map(|disk| match &disk.refusal {
            None => format!("{} ({} bytes)", disk.name, disk.size),
            Some(refusal) => format!("{} ({refusal})", disk.name),
        })
        .collect();
    if words.is_empty() { "none".to_owned() } else { words.join(", ") }
}
