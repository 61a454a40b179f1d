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

/// Every physical interface, with the addresses given for it: its own, and those of a bond or VLAN that it carries. The
/// contract knows of no other interfaces, and whoever looks for an address wants the port behind it.
pub(super) fn nics(root: &Path, addresses: &Addresses) -> Vec<Nic> {
    links::physical(root)
        .into_iter()
        .map(|link| {
            let dir = root.join("sys/class/net").join(&link.name);
            let driver = fs::read_link(dir.join("device/driver")).ok();
            let mut ips = addresses.get(&link.name).cloned().unwrap_or_default();
            ips.extend(carried(root, &link.name, addresses).into_iter().flat_map(|above| above.addresses));
            ips.sort_by_key(|ip| (ip.is_ipv6(), *ip));
            // A bond has the link-local address of a VLAN over it.
            ips.dedup();
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
    /// Bonds and VLANs on top of it, with their addresses.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    carries: Vec<Carried>,
}

/// An interface on top of a physical one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Carried {
    name: String,
    addresses: Vec<IpAddr>,
}

fn carried(root: &Path, name: &str, addresses: &Addresses) -> Vec<Carried> {
    let above = links::above(root, name).into_iter();
    above.map(|name| Carried { addresses: addresses.get(&name).cloned().unwrap_or_default(), name }).collect()
}

/// The details of every physical interface; `permanent` asks one.
pub(super) fn details(
    root: &Path,
    addresses: &Addresses,
    permanent: impl Fn(&str) -> Option<MacAddress>,
) -> Vec<Detail> {
    let detail = |link: links::Link| {
        let dir = root.join("sys/class/net").join(&link.name);
        let carrier = fs::read_to_string(dir.join("carrier")).unwrap_or_default();
        Detail {
            permanent_mac: permanent(&link.name),
            carrier: match carrier.trim() {
                "1" => Some(true),
                "0" => Some(false),
                _ => None,
            },
            pci_address: pci_address(root, &dir.join("device")),
            carries: carried(root, &link.name, addresses),
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
        let details = details(root.path(), &Addresses::new(), |name| mac.filter(|_| name == "eth0"));
        let expected = Detail {
            name: "eth0".into(),
            permanent_mac: mac,
            carrier: Some(true),
            pci_address: Some("pci0".into()),
            carries: Vec::new(),
        };
        assert_eq!(details, [expected]);
    }

    #[test]
    fn addresses_of_bonds_and_vlans_are_told_of_the_ports_that_carry_them() {
        let root = tempfile::tempdir().unwrap();
        let dir = |name: &str| root.path().join("sys/class/net").join(name);
        for (name, index) in [("eth0", 2), ("eth1", 3), ("eth2", 4)] {
            fs::create_dir_all(dir(name).join("device")).unwrap();
            fs::write(dir(name).join("address"), format!("52:54:00:12:34:0{index}\n")).unwrap();
            fs::write(dir(name).join("ifindex"), format!("{index}\n")).unwrap();
        }
        fs::create_dir_all(dir("bond-farrier")).unwrap();
        for (upper, base) in
            [("bond-farrier", "eth0"), ("bond-farrier", "eth1"), ("vlan5.100", "bond-farrier")]
        {
            fs::write(dir(base).join(format!("upper_{upper}")), "").unwrap();
        }
        let ips = |list: &[&str]| list.iter().map(|ip| ip.parse().unwrap()).collect::<Vec<IpAddr>>();
        let addresses = Addresses::from([
            ("bond-farrier".to_owned(), ips(&["fe80::1"])),
            ("vlan5.100".to_owned(), ips(&["fe80::1", "10.0.0.5"])),
        ]);
        let told: Vec<_> = nics(root.path(), &addresses).into_iter().map(|nic| nic.ip_addresses).collect();
        let carried = ["10.0.0.5".to_owned(), "fe80::1".to_owned()];
        assert_eq!(told, [carried.to_vec(), carried.to_vec(), vec![]]);
        let details = serde_json::to_value(details(root.path(), &addresses, |_| None)).unwrap();
        let above = serde_json::json!([
            {"name": "bond-farrier", "addresses": ["fe80::1"]},
            {"name": "vlan5.100", "addresses": ["fe80::1", "10.0.0.5"]},
        ]);
        assert_eq!((&details[0]["carries"], &details[1]["carries"]), (&above, &above));
        assert_eq!(details[2].get("carries"), None);
    }
}
