//! The EFI system partition of an installed disk, and the boot loader in it.

use std::fs;
use std::path::Path;

use super::EfiError;
use crate::disk::gpt::Gpt;
use crate::disk::{Access, AlignedBuffer, Target, read_exact};
use crate::mount::{self, Driver, Mounted};

/// `C12A7328-F81F-11D2-BA4B-00A0C93EC93B` as a table holds it.
const ESP_KIND: [u8; 16] =
    [0x28, 0x73, 0x2a, 0xc1, 0x1f, 0xf8, 0xd2, 0x11, 0xba, 0x4b, 0x00, 0xa0, 0xc9, 0x3e, 0xc9, 0x3b];
/// How much of the disk is read for its table.
const HEAD: u64 = 1 << 20;
/// Most directories below `EFI` looked into.
const MAX_SYSTEMS: usize = 64;

/// An EFI system partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Esp {
    /// Number in the table, counted from one.
    pub number: u32,
    /// First sector.
    pub start: u64,
    /// Length in sectors of the disk.
    pub sectors: u64,
    /// Its identifier, as the table holds it.
    pub guid: [u8; 16],
}

/// What the firmware runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Machine {
    X64,
    /// A 64-bit machine with 32-bit firmware.
    Ia32,
    Aa64,
}

impl Machine {
    /// Of the firmware described in this directory of sysfs.
    pub(super) fn of(firmware: &Path) -> Self {
        let bits = fs::read_to_string(firmware.join("fw_platform_size")).unwrap_or_default();
        match (cfg!(target_arch = "aarch64"), bits.trim()) {
            (true, _) => Self::Aa64,
            (false, "32") => Self::Ia32,
            (false, _) => Self::X64,
        }
    }

    /// The suffix of this machine's programs.
    fn suffix(self) -> &'static str {
        match self {
            Self::X64 => "x64",
            Self::Ia32 => "ia32",
            Self::Aa64 => "aa64",
        }
    }

    /// The path firmware tries by itself (UEFI specification 2.10, section 3.5.1.1).
    fn fallback(self) -> &'static str {
        match self {
            Self::X64 => "\\EFI\\BOOT\\BOOTX64.EFI",
            Self::Ia32 => "\\EFI\\BOOT\\BOOTIA32.EFI",
            Self::Aa64 => "\\EFI\\BOOT\\BOOTAA64.EFI",
        }
    }
}

impl Esp {
    /// The first on the disk, by number.
    ///
    /// # Errors
    /// When the disk cannot be read, or has none.
    pub fn find(target: &dyn Target) -> Result<Self, EfiError> {
        let device = target.open(Access::Shared)?;
        let len = usize::try_from(device.size().min(HEAD)).unwrap_or_default();
        let mut head = AlignedBuffer::zeroed(len);
        read_exact(&*device, &mut head, 0)?;
        let none = || EfiError::NoEsp { disk: target.name().to_owned() };
        let gpt = Gpt::read(&head, device.logical_sector())?.ok_or_else(none)?;
        let entry = gpt.partitions.iter().find(|entry| entry.kind == ESP_KIND).ok_or_else(none)?;
        Ok(Self {
            number: u32::try_from(entry.number).map_err(|_| none())?,
            start: entry.first,
            sectors: entry.last - entry.first + 1,
            guid: entry.guid,
        })
    }

    /// Path of the loader to boot, as firmware writes paths.
    pub(super) fn loader(
        &self,
        target: &dyn Target,
        work: &Path,
        machine: Machine,
    ) -> Result<String, EfiError> {
        let partitions = target.partitions()?;
        let partition = partitions
            .iter()
            .find(|partition| partition.number == u64::from(self.number))
            .ok_or_else(|| EfiError::NoEsp { disk: target.name().to_owned() })?;
        let mounted = Mounted::new(partition, Driver::Fat, work, mount::Access::Read)
            .map_err(|error| EfiError::Esp { partition: partition.name.clone(), source: error.source })?;
        find_loader(&mounted.path, machine).ok_or_else(|| EfiError::NoLoader {
            partition: partition.name.clone(),
            fallback: machine.fallback(),
        })
    }
}

/// The loader in a file system mounted here. The only system's own shim comes first: started by the fallback path it
/// would make entries of its own and put them ahead of all others. Then the fallback path, then the only system's own
/// boot loader.
pub(super) fn find_loader(root: &Path, machine: Machine) -> Option<String> {
    let list = fs::read_dir(root.join("EFI")).into_iter().flatten().take(MAX_SYSTEMS);
    let mut systems: Vec<String> = list
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| !name.eq_ignore_ascii_case("BOOT"))
        .collect();
    systems.sort();
    let only_one = |program: &str| {
        let file = format!("{program}{}.efi", machine.suffix());
        let mut with = systems.iter().filter(|system| root.join("EFI").join(system).join(&file).is_file());
        match (with.next(), with.next()) {
            (Some(system), None) => Some(format!("\\EFI\\{system}\\{file}")),
            _ => None,
        }
    };
    let fallback = machine.fallback();
    let has_fallback = root.join(fallback.trim_start_matches('\\').replace('\\', "/")).is_file();
    only_one("shim")
        .or_else(|| has_fallback.then(|| fallback.to_owned()))
        .or_else(|| only_one("grub"))
        .or_else(|| only_one("systemd-boot"))
}
