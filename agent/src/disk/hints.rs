//! Whether a disk is what `farrier.disk-hints` asks for.

use farrier_shared::contract::options::DiskHints;
use farrier_shared::contract::options::disk_hints::{DiskHint, Match, TextKey, Transport};

use super::Disk;

/// Why this disk is not what is asked for, in a few words: the first hint that does not hold, as the disk has it.
/// [`None`] when every hint holds.
pub(super) fn mismatch(hints: &DiskHints, disk: &Disk) -> Option<String> {
    hints.iter().find_map(|hint| against(hint, disk))
}

/// Whether the operator asks for disks of this transport by name.
pub(super) fn ask_for(hints: &DiskHints, transport: Transport) -> bool {
    hints.iter().any(|hint| *hint == DiskHint::Transport(transport))
}

fn against(hint: &DiskHint, disk: &Disk) -> Option<String> {
    let unless = |holds: bool, text: String| (!holds).then_some(text);
    match hint {
        DiskHint::SizeAtLeast(size) => unless(disk.size >= *size, format!("size is {}", disk.size)),
        DiskHint::SizeAtMost(size) => unless(disk.size <= *size, format!("size is {}", disk.size)),
        DiskHint::Rotational(spins) => {
            unless(disk.rotational == *spins, format!("rotational is {}", u8::from(disk.rotational)))
        }
        DiskHint::Transport(wanted) => {
            let own = disk.attachment.transport;
            let word = own.map_or("unknown", Transport::as_str);
            unless(own == Some(*wanted), format!("transport is {word}"))
        }
        DiskHint::Hctl(wanted) => {
            let own = disk.attachment.hctl;
            let word = own.map_or_else(
                || "none".to_owned(),
                |[host, channel, target, lun]| format!("{host}:{channel}:{target}:{lun}"),
            );
            unless(own == Some(*wanted), format!("hctl is {word}"))
        }
        DiskHint::Text(key, how, wanted) => {
            let wanted = plain(*key, wanted.as_str());
            let own = values(*key, disk);
            let holds = own.iter().map(|value| plain(*key, value)).any(|value| match how {
                Match::Exact => value == wanted,
                // Contained in nothing: a disk without a serial number does not have the one asked for.
                Match::Contains => value.contains(&wanted),
            });
            let words = own.iter().find(|value| !value.is_empty()).map_or("unknown", String::as_str);
            unless(holds, format!("{} is {words}", key.as_str()))
        }
    }
}

fn values(key: TextKey, disk: &Disk) -> Vec<String> {
    let identity = &disk.identity;
    match key {
        TextKey::Model => vec![identity.model.clone()],
        TextKey::Vendor => vec![identity.vendor.clone()],
        TextKey::Serial => vec![identity.serial.clone()],
        TextKey::Wwn => {
            // A disk may have several names; links hold those that are not the kernel's choice.
            let mut names = vec![identity.wwid.clone()];
            let links = identity.links.iter().filter_map(|link| link.strip_prefix("by-id/wwn-"));
            names.extend(links.map(str::to_owned));
            names
        }
        TextKey::ByPath => {
            let links = identity.links.iter();
            links.filter_map(|link| link.strip_prefix("by-path/")).map(str::to_owned).collect()
        }
    }
}

/// What is compared: lower case, runs of white space as one underscore, names without what only says their kind.
fn plain(key: TextKey, text: &str) -> String {
    let text = text.split_ascii_whitespace().collect::<Vec<_>>().join("_").to_ascii_lowercase();
    let prefixes: &[&str] = match key {
        TextKey::Wwn => &["/dev/disk/by-id/", "wwn-", "0x", "naa.", "eui."],
        TextKey::ByPath => &["/dev/disk/by-path/"],
        TextKey::Model | TextKey::Vendor | TextKey::Serial => &[],
    };
    let bare = prefixes.iter().fold(text.as_str(), |text, prefix| text.strip_prefix(prefix).unwrap_or(text));
    bare.to_owned()
}
