//! Network interfaces with hardware behind them.

use std::collections::BTreeMap;
use std::fs;
use std::net::IpAddr;
use std::path::Path;

use farrier_shared::contract::MacAddress;
use farrier_shared::contract::report::Nic;
use serde::Serialize;

use crate::net::links;
use crate::sys::ethtool;

/// Addresses by interface name.
pub(super) type Addresses = BTreeMap<String, Vec<IpAddr>>;

/// Every physical interface, with the addresses given for it.
pub(super) fn nics(root: &Path, addresses: &Addresses) -> Vec<Nic> {
    links::physical(root)
        .into_iter()
        .map(|link| {
            let dir = root.join("sys/class/net").join(&link.name);
            let driver = fs::read_link(dir.join("device/driver")).ok();
            let mut ips = addresses.get(&link.name).cloned().unwrap_or_default();
            ips.sort_by_key(|ip| (ip.is_ipv6(), *ip));
            Nic {
                mac_address: link.mac.to_string(),
                driver: driver
                    .and_then(|d| Some(d.file_name()?.to_string_lossy().into_owned()))
                    .unwrap_or_default(),
                speed: fs::read_to_string(dir.join("speed")).map(|t| speed(&t)).unwrap_or_default(),
                ip_addresses: ips.iter().map(ToString::to_string).collect(),
                name: link.name,
            }
        })
        .collect()
}

/// What the contract has no field for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Detail {
    name: String,
    /// The address it was made with, where that is known.
    permanent_mac: Option<MacAddress>,
    /// Whether a cable leads to something; [`None`] while the interface is down.
    carrier: Option<bool>,
    /// Where it sits; [`None`] off the PCI bus.
    pci_address: Option<String>,
}

/// The details of every physical interface; `permanent` asks one.
pub(super) fn details(root: &Path, permanent: impl Fn(&str) -> Option<MacAddress>) -> Vec<Detail> {
    let detail = |link: links::Link| {
        let dir = root.join("sys/class/net").join(&link.name);
        let carrier = fs::read_to_string(dir.join("carrier")).ok();
        Detail {
            permanent_mac: permanent(&link.name),
            carrier: carrier.map(|text| text.trim() == "1"),
            pci_address: pci_address(root, &dir.join("device")),
            name: link.name,
        }
    };
    links::physical(root).into_iter().map(detail).collect()
}

/// The address this machine's interface was made with.
pub(super) fn permanent_mac(name: &str) -> Option<MacAddress> {
    ethtool::permanent_address(name).ok().filter(|mac| *mac != [0; 6]).map(MacAddress::from_bytes)
}

/// The innermost PCI device on the way to it: a virtio interface lies below its own.
fn pci_address(root: &Path, device: &Path) -> Option<String> {
    let real = fs::canonicalize(device).ok()?;
    let names = real.ancestors().filter_map(|dir| dir.file_name()?.to_str());
    names.map(str::to_owned).find(|name| root.join("sys/bus/pci/devices").join(name).exists())
}

/// `10Gbps`, `2.5Gbps`, `100Mbps`; empty when the kernel does not know.
fn speed(megabits: &str) -> String {
    match megabits.trim().parse::<i64>() {
        Ok(n) if n >= 1000 && n % 1000 == 0 => format!("{}Gbps", n / 1000),
        Ok(n) if n >= 1000 && n % 100 == 0 => format!("{}.{}Gbps", n / 1000, n % 1000 / 100),
        // All ones stands for "unknown", as does minus one.
        Ok(n) if n > 0 && n < i64::from(u32::MAX) => format!("{n}Mbps"),
        _ => String::new(),
    }
}

/// The addresses this machine has now.
pub(super) fn current_addresses() -> Addresses {
    let mut found = Addresses::new();
    let Ok(all) = nix::ifaddrs::getifaddrs() else { return found };
    for interface in all {
        let Some(address) = interface.address else { continue };
        let v4 = address.as_sockaddr_in().map(|a| IpAddr::V4(a.ip()));
        let v6 = address.as_sockaddr_in6().map(|a| IpAddr::V6(a.ip()));
        if let Some(ip) = v4.or(v6) {
            found.entry(interface.interface_name).or_default().push(ip);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn speeds_as_people_write_them() {
        for (text, expected) in [
            ("10000\n", "10Gbps"),
            ("2500", "2.5Gbps"),
            ("100", "100Mbps"),
            ("1000", "1Gbps"),
            ("-1", ""),
            ("0", ""),
            ("4294967295", ""),
            ("", ""),
        ] {
            assert_eq!(speed(text), expected, "{text}");
        }
    }

    #[test]
    fn an_interface_is_told_with_driver_and_addresses_v4_first() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("sys/class/net/eth0");
        let device = root.path().join("sys/devices/pci0/virtio0");
        fs::create_dir_all(&dir).unwrap();
        fs::create_dir_all(&device).unwrap();
        symlink(&device, dir.join("device")).unwrap();
        symlink("../../../bus/virtio/drivers/virtio_net", device.join("driver")).unwrap();
        fs::write(dir.join("address"), "52:54:00:12:34:56\n").unwrap();
        fs::write(dir.join("ifindex"), "2\n").unwrap();
        fs::write(dir.join("speed"), "-1\n").unwrap();
        let ips = ["fe80::1", "10.0.0.5"].map(|t| t.parse().unwrap()).to_vec();
        let nics = nics(root.path(), &Addresses::from([("eth0".to_owned(), ips)]));
        let expected = Nic {
            name: "eth0".into(),
            mac_address: "52:54:00:12:34:56".into(),
            driver: "virtio_net".into(),
            speed: String::new(),
            ip_addresses: vec!["10.0.0.5".into(), "fe80::1".into()],
        };
        assert_eq!(nics, [expected]);
        fs::create_dir_all(root.path().join("sys/bus/pci/devices/pci0")).unwrap();
        fs::write(dir.join("carrier"), "1\n").unwrap();
        let mac = "52:54:00:aa:bb:cc".parse().ok();
        let details = details(root.path(), |name| mac.filter(|_| name == "eth0"));
        let pci_address = Some("pci0".to_owned());
        assert_eq!(
            details,
            [Detail { name: "eth0".into(), permanent_mac: mac, carrier: Some(true), pci_address }]
        );
    }
}
