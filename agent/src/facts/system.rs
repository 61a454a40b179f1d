//! Who made the machine, and how it booted.

use std::fs;
use std::path::Path;

use super::smbios::{Structure, structures};

/// The machine as its firmware names it; what it does not say is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct System {
    /// Manufacturer.
    pub manufacturer: String,
    /// Product name.
    pub model: String,
    /// Serial number.
    pub serial: String,
    /// Firmware version.
    pub firmware: String,
    /// Firmware vendor.
    pub firmware_vendor: String,
    /// Firmware release date, as the firmware writes it.
    pub firmware_date: String,
}

/// From SMBIOS types 1 and 0, each gap filled from the kernel's own copy.
pub(super) fn system(table: &[u8], root: &Path) -> System {
    let first = |kind| structures(table).find(|s| s.kind == kind);
    let text = |s: &Option<Structure<'_>>, at| s.map(|s| s.string(at)).unwrap_or_default();
    let (product, firmware) = (first(1), first(0));
    let or_id = |text: String, file: &str| if text.is_empty() { dmi_id(root, file) } else { text };
    System {
        manufacturer: or_id(text(&product, 0x04), "sys_vendor"),
        model: or_id(text(&product, 0x05), "product_name"),
        serial: or_id(text(&product, 0x07), "product_serial"),
        firmware: or_id(text(&firmware, 0x05), "bios_version"),
        firmware_vendor: or_id(text(&firmware, 0x04), "bios_vendor"),
        firmware_date: or_id(text(&firmware, 0x08), "bios_date"),
    }
}

fn dmi_id(root: &Path, file: &str) -> String {
    let text = fs::read_to_string(root.join("sys/class/dmi/id").join(file)).unwrap_or_default();
    text.trim().to_owned()
}

/// `UEFI` or `Legacy`.
pub(super) fn boot_mode(root: &Path) -> &'static str {
    if root.join("sys/firmware/efi").exists() { "UEFI" } else { "Legacy" }
}

/// Whether Secure Boot was on; [`None`] without UEFI or without the variable.
pub(super) fn secure_boot(root: &Path) -> Option<bool> {
    let variable = "sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c";
    // Four bytes of attributes come before the value.
    fs::read(root.join(variable)).ok()?.get(4).map(|b| *b == 1)
}

/// Major version of the first TPM, `1` or `2`; [`None`] without one, and on a kernel that does not tell.
pub(super) fn tpm_version(root: &Path) -> Option<u8> {
    fs::read_to_string(root.join("sys/class/tpm/tpm0/tpm_version_major")).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::smbios::build::structure;

    fn root_with_id() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let id = root.path().join("sys/class/dmi/id");
        fs::create_dir_all(&id).unwrap();
        fs::write(id.join("sys_vendor"), "ACME\n").unwrap();
        fs::write(id.join("product_serial"), "FROM-ID\n").unwrap();
        root
    }

    #[test]
    fn smbios_comes_first_and_gaps_are_filled() {
        let root = root_with_id();
        let table = [
            structure(0, &[1, 2, 0, 0, 3], &["EDK II", "2024.05", "02/02/2022"]),
            structure(1, &[1, 2, 0, 0], &["QEMU", "Standard PC (Q35 + ICH9, 2009)"]),
        ]
        .concat();
        let system = system(&table, root.path());
        assert_eq!(system.manufacturer, "QEMU");
        assert_eq!(system.model, "Standard PC (Q35 + ICH9, 2009)");
        assert_eq!(system.serial, "FROM-ID");
        assert_eq!((system.firmware.as_str(), system.firmware_date.as_str()), ("2024.05", "02/02/2022"));
    }

    #[test]
    fn without_a_table_the_kernels_copy_serves() {
        let root = root_with_id();
        assert_eq!(system(&[], root.path()).manufacturer, "ACME");
        assert_eq!(system(&[], root.path()).model, "");
    }

    #[test]
    fn a_tpm_tells_its_version() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(tpm_version(root.path()), None);
        let tpm = root.path().join("sys/class/tpm/tpm0");
        fs::create_dir_all(&tpm).unwrap();
        fs::write(tpm.join("tpm_version_major"), "2\n").unwrap();
        assert_eq!(tpm_version(root.path()), Some(2));
    }

    #[test]
    fn boot_mode_is_what_the_kernel_says() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!((boot_mode(root.path()), secure_boot(root.path())), ("Legacy", None));
        let vars = root.path().join("sys/firmware/efi/efivars");
        fs::create_dir_all(&vars).unwrap();
        fs::write(vars.join("SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"), [6, 0, 0, 0, 1]).unwrap();
        assert_eq!((boot_mode(root.path()), secure_boot(root.path())), ("UEFI", Some(true)));
    }
}
