//! SMBIOS tables as firmware writes them, and worse.

use std::path::Path;

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

/// The payload of a frame by which a switch names itself.
pub fn lldp(bytes: &[u8]) {
    let Some(found) = lldp::parse(bytes) else { return };
    assert!(!found.chassis_id.is_empty() && !found.port_id.is_empty());
    for text in [found.chassis_id, found.port_id, found.port_description, found.system_name] {
        assert!(text.len() <= 511 && !text.contains(char::is_control));
    }
}
