//! PCI devices as sysfs lists them, and which of them draw pictures or compute.

use std::fs;
use std::path::Path;

use serde::Serialize;

/// Most devices told of: a server has a hundred or two, a report must stay small.
const MOST: usize = 512;

/// One function of a device; numbers as `lspci -n` writes them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PciDevice {
    /// Such as `0000:3b:00.0`.
    pub(super) address: String,
    /// Four hex digits.
    pub(super) vendor: String,
    /// Four hex digits.
    pub(super) device: String,
    /// Class, subclass and programming interface: six hex digits.
    pub(super) class: String,
    /// Kernel driver, if one serves it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) driver: Option<String>,
}

impl PciDevice {
    /// Display controllers, 3D controllers included (class code 03h).
    pub(super) fn is_gpu(&self) -> bool {
        self.class.starts_with("03")
    }
}

/// Every device in order of address, up to a bound.
pub(super) fn devices(root: &Path) -> Vec<PciDevice> {
    let Ok(entries) = fs::read_dir(root.join("sys/bus/pci/devices")) else { return Vec::new() };
    let mut devices: Vec<_> = entries
        .filter_map(|entry| {
            let dir = entry.ok()?.path();
            let hex = |file: &str| {
                let text = fs::read_to_string(dir.join(file)).ok()?;
                let digits = text.trim().strip_prefix("0x")?;
                digits.bytes().all(|b| b.is_ascii_hexdigit()).then(|| digits.chars().take(8).collect())
            };
            let driver = fs::read_link(dir.join("driver")).ok();
            Some(PciDevice {
                address: dir.file_name()?.to_str()?.to_owned(),
                vendor: hex("vendor")?,
                device: hex("device")?,
                class: hex("class")?,
                driver: driver.and_then(|d| Some(d.file_name()?.to_string_lossy().into_owned())),
            })
        })
        .collect();
    devices.sort_by(|a, b| a.address.cmp(&b.address));
    devices.truncate(MOST);
    devices
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn add(root: &Path, address: &str, class: &str) {
        let dir = root.join("sys/bus/pci/devices").join(address);
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("vendor"), "0x10de\n").unwrap();
        fs::write(dir.join("device"), "0x20b0\n").unwrap();
        fs::write(dir.join("class"), class).unwrap();
    }

    #[test]
    fn devices_come_by_address_with_their_driver_and_gpus_are_known_by_class() {
        let root = tempfile::tempdir().unwrap();
        add(root.path(), "0000:3b:00.0", "0x030200\n");
        add(root.path(), "0000:00:1f.2", "0x010601\n");
        add(root.path(), "0000:00:00.0", "nonsense");
        let link = root.path().join("sys/bus/pci/devices/0000:00:1f.2/driver");
        symlink("../../../bus/pci/drivers/ahci", link).unwrap();
        let found = devices(root.path());
        let seen: Vec<_> =
            found.iter().map(|d| (d.address.as_str(), d.driver.as_deref(), d.is_gpu())).collect();
        assert_eq!(seen, [("0000:00:1f.2", Some("ahci"), false), ("0000:3b:00.0", None, true)]);
        assert_eq!((found[1].vendor.as_str(), found[1].device.as_str()), ("10de", "20b0"));
    }

    #[test]
    fn a_bus_without_end_is_cut() {
        let root = tempfile::tempdir().unwrap();
        for n in 0..MOST + 3 {
            add(root.path(), &format!("0000:{:02x}:{:02x}.0", n / 32, n % 32), "0x020000");
        }
        assert_eq!(devices(root.path()).len(), MOST);
        assert!(devices(Path::new("/nonesuch")).is_empty());
    }
}
