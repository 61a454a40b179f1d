//! SMBIOS tables as firmware writes them, and worse.

use std::path::Path;

use super::ipmi::scripted;
use super::{cpu, lldp, management, memory, smbios, system};

/// A table, and an entry point, through every collector that reads them.
pub fn smbios(bytes: &[u8]) {
    let root = Path::new("/nonexistent");
    let _ = (smbios::version(bytes), management::controller(bytes));
    let named = system::system(bytes, root);
    let cpus = cpu::cpus(bytes, root);
    let modules = memory::modules(bytes, root);
    // A structure is at least four bytes and what it tells comes from it.
    assert!(cpus.len() <= bytes.len() / 4 && modules.len() <= bytes.len() / 4);
    let texts = [named.manufacturer, named.model, named.serial, named.firmware, named.firmware_vendor];
    assert!(texts.iter().all(|text| text.len() <= bytes.len() && !text.contains(char::is_control)));
}

/// What a management controller answers to one request after the other, each response behind its length.
pub fn ipmi(bytes: &[u8]) {
    let channels = scripted::channels(bytes);
    assert!(channels.len() <= 11);
    for channel in channels {
        assert!(channel.mac.is_some() || channel.address.is_some() || !channel.ipv6_addresses.is_empty());
        assert!(channel.mac.is_none_or(|mac| mac.as_bytes() != [0; 6]));
        assert!(channel.address.is_none_or(|ip| !ip.is_unspecified()));
        assert!(channel.prefix_length.is_none_or(|bits| (1..=32).contains(&bits)));
        assert!(channel.vlan.is_none_or(|id| (1..=4094).contains(&id)));
        assert!(channel.ipv6_addresses.len() <= 16);
    }
}

/// The payload of a frame by which a switch names itself.
pub fn lldp(bytes: &[u8]) {
    let Some(found) = lldp::parse(bytes) else { return };
    assert!(!found.chassis_id.is_empty() && !found.port_id.is_empty());
    for text in [found.chassis_id, found.port_id, found.port_description, found.system_name] {
        assert!(text.len() <= 511 && !text.contains(char::is_control));
    }
}
