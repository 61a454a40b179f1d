//! Which disk to write: the operator's pin, which never falls back, or the smallest that is large enough.

use std::fs;
use std::path::Path;

use farrier_shared::contract::DiskPin;
use farrier_shared::contract::options::DiskHints;

use super::{Disk, DiskError, Refusal, Roots, hints};

/// What the target disk must be.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wish<'a> {
    /// The one disk the operator named.
    pub pin: Option<&'a DiskPin>,
    /// What it must be like; a pinned disk too.
    pub hints: Option<&'a DiskHints>,
    /// Least size in bytes; 0 when the size of the image is not known yet.
    pub required: u64,
}

/// The disk to write: the pinned one, else the smallest eligible that is large enough and as the hints ask, the first
/// by name when two are equal. Without a pin or a hint that names its transport no disk is taken that is not the
/// machine's [own](farrier_shared::contract::options::disk_hints::Transport::is_own).
///
/// # Errors
/// When the pin names nothing, or something that must not be written, or nothing is eligible.
pub fn choose(disks: &[Disk], wish: &Wish<'_>, roots: &Roots) -> Result<Disk, DiskError> {
    if let Some(pin) = wish.pin {
        return pinned(disks, pin.as_str(), wish, roots);
    }
    disks
        .iter()
        .filter(|disk| why_not(disk, wish).is_none())
        .min_by(|a, b| (a.size, &a.name).cmp(&(b.size, &b.name)))
        .cloned()
        .ok_or_else(|| {
            let found = list(disks, |disk| why_not(disk, wish));
            match wish.hints {
                Some(hints) => DiskError::NoneMatches { hints: hints.to_string(), found },
                None => DiskError::NoneEligible { required: wish.required, found },
            }
        })
}

/// What keeps a disk from being chosen by itself.
fn why_not(disk: &Disk, wish: &Wish<'_>) -> Option<String> {
    if let Some(refusal) = &disk.refusal {
        return Some(refusal.to_string());
    }
    if let Some(transport) = disk.attachment.transport
        && !transport.is_own()
        && !wish.hints.is_some_and(|hints| hints::ask_for(hints, transport))
    {
        return Some(format!("needs a pin or transport={}", transport.as_str()));
    }
    if let Some(mismatch) = wish.hints.and_then(|hints| hints::mismatch(hints, disk)) {
        return Some(mismatch);
    }
    (disk.size < wish.required).then(|| format!("{} bytes", disk.size))
}

fn pinned(disks: &[Disk], pin: &str, wish: &Wish<'_>, roots: &Roots) -> Result<Disk, DiskError> {
    let disk = resolve(disks, pin, roots)?;
    let disk = match &disk.refusal {
        // The same disk by another way: the better way is taken.
        Some(Refusal::PathOf { disk: best }) => disks.iter().find(|d| d.name == *best).unwrap_or(disk),
        _ => disk,
    };
    let pin = pin.to_owned();
    if let Some(refusal) = &disk.refusal {
        return Err(DiskError::Ineligible { pin, refusal: refusal.clone() });
    }
    if let Some(hints) = wish.hints
        && let Some(mismatch) = hints::mismatch(hints, disk)
    {
        return Err(DiskError::PinAgainstHints { pin, hints: hints.to_string(), mismatch });
    }
    if disk.size < wish.required {
        return Err(DiskError::TooSmall { pin, size: disk.size, required: wish.required });
    }
    Ok(disk.clone())
}

/// The device a pin names: by a link worked out from its identity, a link that exists, or its kernel name.
fn resolve<'a>(disks: &'a [Disk], pin: &str, roots: &Roots) -> Result<&'a Disk, DiskError> {
    let below_dev = pin.strip_prefix("/dev/").unwrap_or(pin);
    if let Some(link) = below_dev.strip_prefix("disk/") {
        let carry = |link: &str| -> Vec<&Disk> {
            disks.iter().filter(|disk| disk.identity.links.iter().any(|l| l == link)).collect()
        };
        let carriers = carry(link);
        let mut whole = carriers.iter().filter(|d| !matches!(d.refusal, Some(Refusal::PathOf { .. })));
        match (whole.next(), whole.next()) {
            (Some(disk), None) => return Ok(*disk),
            (Some(_), Some(_)) => {
                let found = carriers.iter().map(|d| d.name.as_str()).collect::<Vec<_>>().join(", ");
                return Err(DiskError::Ambiguous { pin: pin.to_owned(), found });
            }
            (None, _) => {}
        }
        if let Some(path) = carriers.first() {
            return Ok(*path);
        }
        if link.rsplit_once("-part").is_some_and(|(whole, number)| {
            number.bytes().all(|b| b.is_ascii_digit()) && !carry(whole).is_empty()
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
        Err(DiskError::NotFound { pin, found: list(disks, |d| d.refusal.as_ref().map(ToString::to_string)) })
    }
}

/// The disks in a few words, each with what keeps it from being chosen, for an operator who has to pick another.
fn list(disks: &[Disk], why_not: impl Fn(&Disk) -> Option<String>) -> String {
    let real = disks.iter().filter(|disk| disk.refusal != Some(Refusal::Virtual));
    let words: Vec<String> = real
        .map(|disk| {
            let words = why_not(disk).unwrap_or_else(|| format!("{} bytes", disk.size));
            format!("{} ({words})", disk.name)
        })
        .collect();
    if words.is_empty() { "none".to_owned() } else { words.join(", ") }
}
