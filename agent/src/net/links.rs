//! The machine's network interfaces, and which of them to use.

use std::fs;
use std::path::Path;

use farrier_shared::contract::MacAddress;

/// Most interfaces followed upwards from one.
const MAX_ABOVE: usize = 64;

/// A physical network interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Kernel name, such as `eth0`.
    pub name: String,
    /// Interface index.
    pub index: u32,
    /// Address on the wire.
    pub mac: MacAddress,
    /// It hangs on USB, as the BMC's own link to its host does.
    pub usb: bool,
}

/// Every Ethernet interface with hardware behind it, by index: the order drivers found them in.
///
/// Bonds, bridges, tunnels and the loopback have no `device` link and are left out, as are interfaces that are
/// not Ethernet and ports without an address.
pub fn physical(root: &Path) -> Vec<Link> {
    let Ok(entries) = fs::read_dir(root.join("sys/class/net")) else { return Vec::new() };
    let mut links: Vec<Link> = entries
        .filter_map(|entry| {
            let dir = entry.ok()?.path();
            let read = |file: &str| fs::read_to_string(dir.join(file)).ok().map(|t| t.trim().to_owned());
            if !dir.join("device").exists() || read("type").is_some_and(|t| t != "1") {
                return None;
            }
            // A member of a bond wears the bond's address; its own is what names it.
            let mac = read("bonding_slave/perm_hwaddr").or_else(|| read("address"))?;
            let mac: MacAddress = mac.parse().ok()?;
            Some(Link {
                name: dir.file_name()?.to_str()?.to_owned(),
                index: read("ifindex")?.parse().ok()?,
                mac,
                usb: is_usb(&dir),
            })
        })
        .filter(|link| link.mac.as_bytes() != [0; 6])
        .collect();
    links.sort_by_key(|link| link.index);
    links
}

/// Whether the device at this place in sysfs hangs on USB.
fn is_usb(dir: &Path) -> bool {
    let real = fs::canonicalize(dir).unwrap_or_default();
    real.iter().filter_map(|part| part.to_str()?.strip_prefix("usb")).any(|bus| bus.parse::<u32>().is_ok())
}

/// The interfaces on top of one, from it upwards: the bond it is a member of, VLANs over either.
pub fn above(root: &Path, name: &str) -> Vec<String> {
    let mut found = vec![name.to_owned()];
    let mut next = 0;
    while let Some(base) = found.get(next).filter(|_| found.len() <= MAX_ABOVE) {
        let entries = fs::read_dir(root.join("sys/class/net").join(base));
        let mut uppers: Vec<String> = entries
            .into_iter()
            .flatten()
            .filter_map(|entry| Some(entry.ok()?.file_name().to_str()?.strip_prefix("upper_")?.to_owned()))
            .filter(|upper| !found.contains(upper))
            .collect();
        uppers.sort();
        found.extend(uppers);
        next += 1;
    }
    found.remove(0);
    found
}

/// Which interface to use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// This one.
    One(Link),
    /// Any of these: whichever leads to the controller.
    Race(Vec<Link>),
}

/// Why no interface can be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LinkError {
    /// There is none.
    #[error("no network interface: no driver of the inspection image fits this machine's adapters")]
    None,
    /// The one the firmware booted from is not there.
    #[error(
        "the boot interface {wanted} is not among {found}; its driver may be missing from the inspection image"
    )]
    NoBootInterface {
        /// The address of `BOOTIF`.
        wanted: MacAddress,
        /// What there is.
        found: String,
    },
    /// A static address needs one interface to put it on.
    #[error("a static address is given and there are {count} interfaces; add BOOTIF to say which")]
    AmbiguousStatic {
        /// How many.
        count: usize,
    },
    /// None of the links a bond was to be made of is there.
    #[error("no member of farrier.bond is among {found}; its links are named by their MAC addresses")]
    NoBondMember {
        /// What there is.
        found: String,
    },
}

fn names(links: &[Link]) -> String {
    let names: Vec<_> = links.iter().map(|l| format!("{} {}", l.name, l.mac)).collect();
    if names.is_empty() { "no interfaces".to_owned() } else { names.join(", ") }
}

/// Chooses: the boot interface when it is known, the only one when there is one, else a race.
///
/// # Errors
/// See [`LinkError`].
pub fn choose(links: &[Link], boot: Option<MacAddress>, is_static: bool) -> Result<Choice, LinkError> {
    if let Some(wanted) = boot {
        let boot = links.iter().find(|l| l.mac == wanted).cloned();
        return boot
            .map(Choice::One)
            .ok_or_else(|| LinkError::NoBootInterface { wanted, found: names(links) });
    }
    match links {
        [] => Err(LinkError::None),
        [only] => Ok(Choice::One(only.clone())),
        several if is_static => Err(LinkError::AmbiguousStatic { count: several.len() }),
        several => Ok(Choice::Race(several.to_vec())),
    }
}

/// The members of a bond, first the one whose address the bond gets: the interface the firmware booted from, so that
/// leases and allow-lists fit.
///
/// Without a list these are all links of `alive`, those with a carrier, and the boot interface in any case. A link on USB
/// has to be listed: no switch is behind the BMC's.
///
/// # Errors
/// When the boot interface is not there, or none of the listed links is.
pub fn bond_members(
    links: &[Link],
    alive: &[u32],
    boot: Option<MacAddress>,
    listed: &[MacAddress],
) -> Result<Vec<Link>, LinkError> {
    if let Some(wanted) = boot.filter(|mac| !links.iter().any(|l| l.mac == *mac)) {
        return Err(LinkError::NoBootInterface { wanted, found: names(links) });
    }
    let mut members: Vec<Link> = links
        .iter()
        .filter(|l| match listed {
            [] => alive.contains(&l.index) && !l.usb || Some(l.mac) == boot,
            listed => listed.contains(&l.mac),
        })
        .cloned()
        .collect();
    if members.is_empty() {
        if !listed.is_empty() {
            return Err(LinkError::NoBondMember { found: names(links) });
        }
        // No cable anywhere yet: whichever gets one later is a member already.
        members = links.iter().filter(|l| !l.usb).cloned().collect();
    }
    // Otherwise in the order of the list, which is the operator's preference.
    members.sort_by_key(|l| (Some(l.mac) != boot, listed.iter().position(|mac| *mac == l.mac), l.index));
    if members.is_empty() { Err(LinkError::None) } else { Ok(members) }
}

/// An interface for tests: its name and address follow from its index.
#[cfg(test)]
pub(super) fn link(index: u32) -> Link {
    let last = u8::try_from(index).unwrap();
    let mac = MacAddress::from_bytes([2, 0, 0, 0, 0, last]);
    Link { name: format!("eth{index}"), index, mac, usb: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_choice_follows_boot_interface_then_count() {
        let two = [link(1), link(2)];
        let boot = Some(two[1].mac);
        assert_eq!(choose(&two, boot, false), Ok(Choice::One(link(2))));
        assert_eq!(choose(&two, boot, true), Ok(Choice::One(link(2))));
        assert_eq!(choose(&two[..1], None, true), Ok(Choice::One(link(1))));
        assert_eq!(choose(&two, None, false), Ok(Choice::Race(two.to_vec())));
        assert_eq!(choose(&two, None, true), Err(LinkError::AmbiguousStatic { count: 2 }));
        assert_eq!(choose(&[], None, false), Err(LinkError::None));
    }

    #[test]
    fn a_boot_interface_that_is_not_there_is_an_error_and_never_another_one() {
        let error = choose(&[link(1)], Some(link(9).mac), false).unwrap_err().to_string();
        assert!(error.contains("02:00:00:00:00:09") && error.contains("eth1 02:00:00:00:00:01"), "{error}");
    }

    #[test]
    fn a_bond_is_made_of_what_is_listed_or_alive_with_the_boot_interface_first() {
        let all = [link(1), link(2), link(3)];
        let members = |alive: &[u32], boot: Option<u32>, listed: &[u32]| {
            let listed: Vec<_> = listed.iter().map(|n| link(*n).mac).collect();
            let members = bond_members(&all, alive, boot.map(|n| link(n).mac), &listed);
            members.map(|m| m.iter().map(|l| l.index).collect::<Vec<_>>())
        };
        for (alive, boot, listed, expected) in [
            (&[1, 3][..], None, &[][..], &[1, 3][..]),
            (&[1, 3], Some(3), &[], &[3, 1]),
            (&[1], Some(2), &[], &[2, 1]),
            (&[], None, &[], &[1, 2, 3]),
            (&[1, 2, 3], None, &[3, 2], &[3, 2]),
            (&[], Some(2), &[3, 2], &[2, 3]),
            (&[], None, &[3, 9], &[3]),
            (&[], Some(1), &[3], &[3]),
        ] {
            assert_eq!(members(alive, boot, listed).unwrap(), expected, "{alive:?} {boot:?} {listed:?}");
        }
        assert!(matches!(members(&[1], None, &[9]), Err(LinkError::NoBondMember { .. })));
        assert!(matches!(members(&[1], Some(9), &[]), Err(LinkError::NoBootInterface { .. })));
        assert_eq!(bond_members(&[], &[], None, &[]), Err(LinkError::None));
    }

    #[test]
    fn a_link_on_usb_joins_a_bond_only_when_it_is_listed_or_booted_from() {
        let usb = Link { usb: true, ..link(2) };
        let all = [link(1), usb.clone(), link(3)];
        let members = |alive: &[u32], boot: Option<MacAddress>, listed: &[MacAddress]| {
            let members = bond_members(&all, alive, boot, listed);
            members.map(|m| m.iter().map(|l| l.index).collect::<Vec<_>>())
        };
        assert_eq!(members(&[1, 2, 3], None, &[]), Ok(vec![1, 3]));
        assert_eq!(members(&[], None, &[]), Ok(vec![1, 3]));
        assert_eq!(members(&[1, 2], Some(usb.mac), &[]), Ok(vec![2, 1]));
        assert_eq!(members(&[], None, &[link(3).mac, usb.mac]), Ok(vec![3, 2]));
        assert_eq!(bond_members(&[usb], &[2], None, &[]), Err(LinkError::None));
    }

    #[test]
    fn a_link_on_usb_is_known_by_its_place() {
        let root = tempfile::tempdir().unwrap();
        let class = root.path().join("sys/class/net");
        fs::create_dir_all(&class).unwrap();
        let places =
            [("eth0", "pci0000:00/0000:00:03.0"), ("usb0", "pci0000:00/0000:00:14.0/usb1/1-2/1-2:1.0")];
        for (index, (name, place)) in (1..).zip(places) {
            let real = root.path().join("sys/devices").join(place).join("net").join(name);
            fs::create_dir_all(real.join("device")).unwrap();
            fs::write(real.join("address"), format!("02:00:00:00:00:0{index}\n")).unwrap();
            fs::write(real.join("ifindex"), format!("{index}\n")).unwrap();
            std::os::unix::fs::symlink(&real, class.join(name)).unwrap();
        }
        let found: Vec<_> = physical(root.path()).into_iter().map(|l| (l.name, l.usb)).collect();
        assert_eq!(found, [("eth0".to_owned(), false), ("usb0".to_owned(), true)]);
    }

    #[test]
    fn a_member_of_a_bond_is_known_by_its_own_address() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("sys/class/net/eth1");
        fs::create_dir_all(dir.join("device")).unwrap();
        fs::create_dir(dir.join("bonding_slave")).unwrap();
        fs::write(dir.join("address"), "02:00:00:00:00:01\n").unwrap();
        fs::write(dir.join("bonding_slave/perm_hwaddr"), "02:00:00:00:00:02\n").unwrap();
        fs::write(dir.join("ifindex"), "3\n").unwrap();
        assert_eq!(physical(root.path())[0].mac, link(2).mac);
    }

    #[test]
    fn what_stands_on_an_interface_is_followed_upwards_and_in_no_circle() {
        let root = tempfile::tempdir().unwrap();
        let stand = |upper: &str, base: &str| {
            let dir = root.path().join("sys/class/net").join(base);
            fs::create_dir_all(&dir).unwrap();
            fs::write(dir.join(format!("upper_{upper}")), "").unwrap();
        };
        for (upper, base) in [
            ("bond", "eth0"),
            ("bond", "eth1"),
            ("vlan5.100", "bond"),
            ("vlan3.7", "eth1"),
            ("bond", "vlan5.100"),
        ] {
            stand(upper, base);
        }
        assert_eq!(above(root.path(), "eth0"), ["bond", "vlan5.100"]);
        assert_eq!(above(root.path(), "eth1"), ["bond", "vlan3.7", "vlan5.100"]);
        assert_eq!(above(root.path(), "eth2"), [""; 0]);
    }

    #[test]
    fn only_ethernet_with_hardware_counts() {
        let root = tempfile::tempdir().unwrap();
        let make = |name: &str, index: u32, mac: &str, kind: &str, device: bool| {
            let dir = root.path().join("sys/class/net").join(name);
            fs::create_dir_all(&dir).unwrap();
            fs::write(dir.join("address"), format!("{mac}\n")).unwrap();
            fs::write(dir.join("ifindex"), format!("{index}\n")).unwrap();
            fs::write(dir.join("type"), format!("{kind}\n")).unwrap();
            if device {
                fs::create_dir(dir.join("device")).unwrap();
            }
        };
        make("lo", 1, "00:00:00:00:00:00", "772", false);
        make("eth1", 3, "02:00:00:00:00:03", "1", true);
        make("eth0", 2, "02:00:00:00:00:02", "1", true);
        make("bond0", 4, "02:00:00:00:00:02", "1", false);
        make("ib0", 5, "80:00:00:00:00:02", "32", true);
        make("ghost", 6, "00:00:00:00:00:00", "1", true);
        let names: Vec<_> = physical(root.path()).into_iter().map(|l| l.name).collect();
        assert_eq!(names, ["eth0", "eth1"]);
    }
}
