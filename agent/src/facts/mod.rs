//! Describes the machine: the inspection report.
//!
//! Each collector reads below a root path and answers with what it found. One that fails leaves a note in the
//! report, never a hole in the run: a machine that cannot be described can still be installed.

mod ata;
mod cpu;
mod disks;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod health;
pub mod ipmi;
pub mod lldp;
mod management;
mod memory;
mod nics;
mod numa;
mod pci;
mod running;
mod smbios;
mod system;
pub mod table;

use std::fs;
use std::path::Path;

use farrier_shared::contract::InspectionReport;
use serde_json::json;

use crate::disk::{self, Disk, Roots};

/// What was found, for the controller and for the steps to come.
#[derive(Clone, Debug)]
pub struct Facts {
    /// The report.
    pub report: InspectionReport,
    /// Every block device, for the choice of the target.
    pub disks: Vec<Disk>,
}

/// Where `/sys`, `/dev` and `/proc` are below a root.
pub fn roots(root: &Path) -> Roots {
    Roots { sys: root.join("sys"), dev: root.join("dev"), proc: root.join("proc") }
}

/// The block devices of the machine whose `/sys` and `/proc` are below `root`, and nothing else of it. None when they
/// cannot be listed.
pub fn look_for_disks(root: &Path) -> Vec<Disk> {
    disk::discover(&roots(root)).unwrap_or_else(|error| {
        tracing::warn!(%error, "disks not listed");
        Vec::new()
    })
}

/// Looks at the machine whose `/sys` and `/proc` are below `root`.
pub fn collect(root: &Path) -> Facts {
    let mut notes: Vec<String> = Vec::new();
    let tables = root.join("sys/firmware/dmi/tables");
    let table = fs::read(tables.join("DMI")).unwrap_or_else(|error| {
        notes.push(format!("SMBIOS table not read: {error}"));
        Vec::new()
    });
    let smbios_version = fs::read(tables.join("smbios_entry_point")).ok().and_then(|e| smbios::version(&e));
    let disks = disk::discover(&roots(root)).unwrap_or_else(|error| {
        notes.push(format!("disks not listed: {error}"));
        Vec::new()
    });
    // The kernel and the hardware can be asked of this machine only, not of a tree that describes another.
    let is_this_machine = root == Path::new("/");
    let health = is_this_machine.then(|| health::Question::put(disks::reported(&disks)));
    let addresses = if is_this_machine { nics::current_addresses() } else { nics::Addresses::new() };
    let system = system::system(&table, root);
    let report = InspectionReport {
        timestamp: None,
        manufacturer: system.manufacturer,
        model: system.model,
        serial_number: system.serial,
        boot_mode_detected: system::boot_mode(root).to_owned(),
        firmware_version: system.firmware,
        cpus: cpu::cpus(&table, root),
        memory: memory::modules(&table, root),
        disks: disks::disks(&disks),
        nics: nics::nics(root, &addresses),
        farrier: None,
    };
    let absent = [
        (report.manufacturer.is_empty(), "manufacturer unknown"),
        (report.cpus.is_empty(), "no processor found"),
        (report.memory.is_empty(), "no memory module found"),
        (report.disks.is_empty(), "no disk found"),
        (report.nics.is_empty(), "no network interface found"),
    ];
    notes.extend(absent.into_iter().filter(|(is_absent, _)| *is_absent).map(|(_, note)| note.to_owned()));
    let running = is_this_machine.then(running::running).flatten();
    notes.extend(running.and_then(|r| running::missing_memory(&report.memory, r.memory_bytes)));
    let health = health.map(health::Question::answers).unwrap_or_default();
    notes.extend(health.notes());
    let permanent = |name: &str| is_this_machine.then(|| nics::permanent_mac(name)).flatten();
    let disk_details = disks::details(&disks, root, |disk| health.of(disk));
    notes.extend(disk_details.iter().filter_map(disks::Detail::warning));
    let pci = pci::devices(root);
    let farrier = json!({
        "agentVersion": env!("CARGO_PKG_VERSION"),
        "kernel": crate::init::kernel_release(),
        "smbiosVersion": smbios_version,
        "firmwareVendor": system.firmware_vendor,
        "firmwareDate": system.firmware_date,
        "secureBoot": system::secure_boot(root),
        "kernelMemoryBytes": running.map(|r| r.memory_bytes),
        "kernelLogicalCpus": running.map(|r| r.logical_cpus),
        "tpm": root.join("sys/class/tpm/tpm0").exists(),
        "tpmVersion": system::tpm_version(root),
        "bmc": management::controller(&table),
        "numa": numa::nodes(root),
        "disks": disk_details,
        "nics": nics::details(root, &addresses, permanent),
        "gpus": pci.iter().filter(|d| d.is_gpu()).collect::<Vec<_>>(),
        "pci": pci,
        "notes": notes,
    });
    Facts { report: InspectionReport { farrier: Some(farrier), ..report }, disks }
}

#[cfg(test)]
mod tests;
