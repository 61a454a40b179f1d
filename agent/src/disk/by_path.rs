//! Names by position, `by-path/pci-…`: which slot and port a disk sits in.
//!
//! Covers virtio, NVMe, ATA and directly attached SCSI. SAS expanders, Fibre Channel, iSCSI and USB are named by
//! serial or world-wide name instead.

use std::fs;
use std::path::{Component, Path};

use super::discover::attribute;

/// The names of the disk at this real path under `/sys/devices`.
pub(super) fn names(real: &Path) -> Vec<String> {
    let parts: Vec<&str> = real
        .components()
        .filter_map(|c| match c {
            Component::Normal(part) => part.to_str(),
            _ => None,
        })
        .collect();
    let Some(at) = parts.iter().rposition(|part| is_pci_address(part)) else { return Vec::new() };
    let pci = format!("pci-{}", parts[at]);
    let dir_of = |part: &str| {
        real.ancestors().find(|dir| dir.file_name().is_some_and(|name| name == part)).unwrap_or(real)
    };
    let below = &parts[at + 1..];
    match below {
        ["nvme", _, name] => {
            attribute(dir_of(name), "nsid").map(|n| format!("{pci}-nvme-{n}")).into_iter().collect()
        }
        [virtio, "block", _] if virtio.starts_with("virtio") => vec![pci.clone(), format!("virtio-{pci}")],
        [ata, host, _, address, "block", _] if ata.starts_with("ata") && host.starts_with("host") => {
            let port = attribute(&dir_of(ata).join("ata_port").join(ata), "port_no");
            let target = address.split(':').nth(2).unwrap_or("0");
            let named = |port: String| [format!("{pci}-ata-{port}"), format!("{pci}-ata-{port}.{target}")];
            port.map(named).into_iter().flatten().collect()
        }
        [virtio, host, _, address, "block", _] if virtio.starts_with("virtio") => scsi(dir_of(host), address)
            .map(|s| vec![format!("{pci}-{s}"), format!("virtio-{pci}-{s}")])
            .unwrap_or_default(),
        [host, _, address, "block", _] if host.starts_with("host") => {
            scsi(dir_of(host), address).map(|s| format!("{pci}-{s}")).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

/// `scsi-H:C:T:L` with the host counted from the adapter's first, since kernel host numbers move.
fn scsi(host_dir: &Path, address: &str) -> Option<String> {
    let number = |name: &str| name.strip_prefix("host")?.parse::<u32>().ok();
    let own = number(host_dir.file_name()?.to_str()?)?;
    let siblings = fs::read_dir(host_dir.parent()?).ok()?.flatten();
    let first = siblings.filter_map(|entry| number(entry.file_name().to_str()?)).min().unwrap_or(own);
    let (_, rest) = address.split_once(':')?;
    Some(format!("scsi-{}:{rest}", own - first))
}

/// `0000:00:1f.2`: domain, bus, device, function.
fn is_pci_address(part: &str) -> bool {
    let hex = |text: &str, least: usize| text.len() >= least && text.bytes().all(|b| b.is_ascii_hexdigit());
    let fields: Vec<&str> = part.split([':', '.']).collect();
    matches!(fields[..], [domain, bus, device, function]
        if hex(domain, 4) && hex(bus, 2) && hex(device, 2) && hex(function, 1))
        && part.matches(':').count() == 2
}
