//! What a disk is called for good: serial, world-wide name, and the `/dev/disk/by-*` names made of them.
//!
//! An initramfs without udev has no such links, so the names are worked out here from the same attributes.

use std::fs;
use std::path::Path;

use super::Roots;
use super::by_path;
use super::discover::{attribute, number};
use super::vpd;

/// What stays the same when kernel names move.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// Model.
    pub model: String,
    /// Vendor, where the disk tells it apart from the model.
    pub vendor: String,
    /// Serial number.
    pub serial: String,
    /// World-wide name as the kernel gives it (`naa.…`, `eui.…`, `nvme.…`, `t10.…`).
    pub wwid: String,
    /// Names under `/dev/disk/`, such as `by-id/wwn-0x…`, sorted.
    pub links: Vec<String>,
    /// Counted up by the kernel with every disk that appears, and with every change of a medium; [`None`] before
    /// Linux 5.15. No name: it is another one after each start.
    pub sequence: Option<u64>,
}

impl Identity {
    /// Reads the identity of one disk; what the hardware does not tell stays empty.
    pub(super) fn read(roots: &Roots, name: &str) -> Self {
        let block = roots.block(name);
        let device = block.join("device");
        let pages = vpd::Pages::read(&device);
        let ata = pages.ata();
        let first = |options: [Option<String>; 4]| options.into_iter().flatten().next().unwrap_or_default();
        let model = first([
            ata.as_ref().map(|a| a.model.clone()),
            attribute(&device, "model"),
            attribute(&device, "name"),
            None,
        ]);
        let serial = first([
            attribute(&block, "serial"),
            ata.as_ref().map(|a| a.serial.clone()),
            pages.serial(),
            attribute(&device, "serial"),
        ]);
        let wwid =
            first([attribute(&block, "wwid"), attribute(&device, "wwid"), attribute(&device, "cid"), None]);
        // The kernel's translation gives every ATA disk the vendor `ATA`; virtio gives a number.
        let vendor = attribute(&device, "vendor").filter(|v| ata.is_none() && !v.starts_with("0x"));
        let vendor = vendor.unwrap_or_default();
        let sequence = number(&block, "diskseq");
        let mut identity = Self { model, vendor, serial, wwid, links: Vec::new(), sequence };
        let mut links: Vec<String> = identity
            .ids(name, &block, &device, &pages)
            .iter()
            .map(|id| format!("by-id/{}", safe(id)))
            .collect();
        if let Ok(real) = fs::canonicalize(&block) {
            links.extend(by_path::names(&real).iter().map(|path| format!("by-path/{path}")));
        }
        links.sort();
        links.dedup();
        identity.links = links;
        identity
    }

    fn ids(&self, name: &str, block: &Path, device: &Path, pages: &vpd::Pages) -> Vec<String> {
        let (model, serial) = (joined(&self.model), joined(&self.serial));
        let mut ids = Vec::new();
        if name.starts_with("nvme") {
            if !self.wwid.is_empty() {
                ids.push(format!("nvme-{}", self.wwid));
            }
            if !serial.is_empty() {
                ids.push(format!("nvme-{model}_{serial}"));
                let namespace = attribute(block, "nsid");
                ids.extend(namespace.map(|nsid| format!("nvme-{model}_{serial}_{nsid}")));
            }
            return ids;
        }
        if name.starts_with("mmcblk") {
            if !serial.is_empty() {
                ids.push(format!("mmc-{model}_{serial}"));
            }
            return ids;
        }
        if name.starts_with("vd") {
            if !serial.is_empty() {
                ids.push(format!("virtio-{serial}"));
            }
            return ids;
        }
        ids.extend(pages.scsi_ids().iter().map(|id| format!("scsi-{}", joined(id))));
        if let Some(naa) = self.wwid.strip_prefix("naa.") {
            ids.push(format!("scsi-3{naa}"));
            ids.push(format!("wwn-0x{naa}"));
        }
        if let Some(eui) = self.wwid.strip_prefix("eui.") {
            ids.push(format!("scsi-2{eui}"));
        }
        if pages.ata().is_some() {
            ids.push(format!("ata-{model}_{serial}"));
        } else if let Some(vendor) = attribute(device, "vendor")
            && !serial.is_empty()
        {
            ids.push(format!("scsi-S{}_{model}_{serial}", joined(&vendor)));
        }
        ids
    }
}

/// Trimmed, each run of white space one underscore.
fn joined(text: &str) -> String {
    text.split_ascii_whitespace().collect::<Vec<_>>().join("_")
}

/// Characters that device links do not carry become underscores.
fn safe(id: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "#+-.:=@_".contains(c) || !c.is_ascii();
    id.chars().map(|c| if plain(c) { c } else { '_' }).collect()
}
