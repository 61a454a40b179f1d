//! Machines as they come: disks of 4096-byte sectors, another firmware, little memory.

use anyhow::{Result, ensure};

use super::Given;
use super::install::Install;
use crate::archive;
use crate::lab::ServerPlan;
use crate::partitions::{MIB, Sector};
use crate::qemu::{Bus, Firmware};
use crate::synthetic::{Oem, image};

pub(super) async fn native_sectors(given: &Given) -> Result<()> {
    let plan = ServerPlan::new("anvil").with_disks(Bus::Nvme, Sector::B4096);
    Install::of(&given.os.native, plan).run(given).await?;
    Ok(())
}

pub(super) async fn bios(given: &Given) -> Result<()> {
    let plan = ServerPlan { firmware: Firmware::Bios, ..ServerPlan::new("anvil") };
    let installed = Install::of(&given.os.plain, plan).run(given).await?;
    let mode = &installed.report["bootModeDetected"];
    ensure!(mode == "Legacy", "the boot mode is {mode}");
    Ok(())
}

/// Memory of the smallest machine, in MiB.
const LITTLE: u64 = 512;

pub(super) async fn little_memory(given: &Given) -> Result<()> {
    std::fs::create_dir_all(&given.dir)?;
    let raw = image(&given.dir.join("large.raw"), LITTLE + 128, Oem::Present)?;
    let digest = archive::digest(&raw)?;
    let plan = ServerPlan { memory_mib: LITTLE, ..ServerPlan::new("anvil") };
    ensure!(raw.metadata()?.len() > LITTLE * MIB, "the image fits into memory");
    let usual = Install::of(&given.os.plain, plan);
    Install { file: &raw, digest: &digest, raw: &raw, boots: false, ..usual }.run(given).await?;
    Ok(())
}
