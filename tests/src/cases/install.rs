//! A run that is to succeed, from an empty machine to what its disk holds and what boots from it.

use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::Given;
use super::run::{self, Order, UserData};
use crate::lab::{Addressing, BOOT_PORT, CONTROLLER, Lab, ServeOptions, ServerPlan, credentials};
use crate::partitions::Sector;
use crate::qemu::BootFrom;
use crate::redfish::{Boot, Cause};
use crate::target_os::DiskImage;
use crate::{disk_check, secrets};

/// From the order to the installed disk.
const INSTALL_LIMIT: Duration = Duration::from_secs(15 * 60);
/// From the reboot to the first word of the installed system.
const BOOT_LIMIT: Duration = Duration::from_secs(6 * 60);

/// What is installed, and on what.
pub(super) struct Install<'a> {
    /// The machine.
    pub(super) plan: ServerPlan,
    /// What the controller serves.
    pub(super) file: &'a Path,
    /// Its digest.
    pub(super) digest: &'a str,
    /// What the disk must hold in the end.
    pub(super) raw: &'a Path,
    /// Whether an operating system is in it, which must then greet with its marker.
    pub(super) boots: bool,
    /// What addresses there are.
    pub(super) addressing: Addressing,
    /// Where the agent finds the controller and its image.
    pub(super) controller: IpAddr,
    /// Where the installed system finds the room.
    pub(super) room: IpAddr,
    /// Whether the boot script tells the agent which card the firmware booted from.
    pub(super) bootif: bool,
}

impl<'a> Install<'a> {
    /// An operating system, the usual way.
    pub(super) fn of(image: &'a DiskImage, plan: ServerPlan) -> Self {
        Self {
            plan,
            file: &image.zstd,
            digest: &image.zstd_digest,
            raw: &image.raw,
            boots: true,
            addressing: Addressing::Routed,
            controller: CONTROLLER.into(),
            room: CONTROLLER.into(),
            bootif: true,
        }
    }

    /// Installs it, and returns what the agent reported of the machine.
    ///
    /// # Errors
    /// At the first thing that is not as it must be.
    pub(super) async fn run(self, given: &Given) -> Result<Value> {
        let mut lab = Lab::with(&given.dir, self.addressing).await?;
        let serve = ServeOptions { address: self.controller, ..ServeOptions::default() };
        let controller = lab.controller(&given.inspection, serve).await?;
        let sector = self.plan.disks[0].sector;
        let server = lab.server(self.plan).await?;
        server.machine.hold_resets().await?;
        run::enrol(&controller, &server).await?;
        let user_data = UserData::reporting_to(self.room)?;
        let image = controller.offer(self.file)?;
        let order = Order { image: &image, digest: self.digest, user_data: &user_data, disk: None };
        run::provision(&lab, &controller, &server.name, &order).await?;
        run::reaches(&controller, &server.name, "Inspecting", Duration::from_secs(60)).await?;
        let credentials = credentials(&controller.data_dir(), &server.name).await?;
        if !self.bootif {
            lab.serve_to_ipxe(&anonymous(&server.name, credentials.nonce.expose()))?;
        }
        let host = run::reaches(&controller, &server.name, "Ready", INSTALL_LIMIT).await?;
        server.machine.held(Duration::from_secs(60)).await?;
        disk_holds(server.boot_disk(), self.raw, sector)?;
        let other = &server.machine.hardware().disks[1];
        disk_check::untouched(&other.file).context("the other disk")?;
        run::machine_is(&controller, &server.name, "Provisioned").await?;
        let mut boots = vec![Boot { cause: Cause::PowerOn, from: BootFrom::Network }];
        if self.boots {
            server.machine.resume().await?;
            let greeting = lab.greetings.first(BOOT_LIMIT).await?;
            let marker = format!(" marker={} ", user_data.marker);
            ensure!(greeting.contains(&marker), "the system reported {greeting:?} without{marker}");
            boots.push(Boot { cause: Cause::GuestReset, from: BootFrom::Disk });
        }
        ensure!(server.machine.boots() == boots, "booted {:?}", server.machine.boots());

        let mut hidden = run::hidden(&credentials, &server);
        // The script above names the nonce in a URL, and iPXE prints the URLs it loads.
        hidden.retain(|secret| self.bootif || secret.name != "nonce");
        hidden.push(user_data.secret.clone());
        let leaks = secrets::leaks(&given.dir, &hidden)?;
        ensure!(leaks.is_empty(), "secrets in logs: {leaks:#?}");
        Ok(host["status"]["inspectionReport"].clone())
    }
}

fn disk_holds(disk: &Path, raw: &Path, sector: Sector) -> Result<()> {
    disk_check::holds_image(disk, raw, sector, "oem")
}

/// A first stage that asks for the script by itself and does not say by which card it boots.
fn anonymous(host: &str, nonce: &str) -> String {
    format!(
        "#!ipxe\n:dhcp\ndhcp || goto dhcp\n\
         chain http://{CONTROLLER}:{BOOT_PORT}/api/v1/boot/default/{host}/{nonce}?platform=${{platform}}\n"
    )
}
