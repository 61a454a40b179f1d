//! A run that is to succeed, from an empty machine to what its disk holds and what boots from it.

use std::fs;
use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use farrier_shared::lifecycle::credentials::Credentials;
use serde_json::Value;

use super::Given;
use super::run::{self, Order, UserData};
use super::seeds::Seed;
use crate::disk_check;
use crate::lab::{
    Addressing, BOOT_PORT, CONTROLLER, Controller, Lab, ServeOptions, Served, Server, ServerPlan, credentials,
};
use crate::leftovers::Leftovers;
use crate::qemu::BootFrom;
use crate::redfish::{Boot, Cause};
use crate::target_os::DiskImage;

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
    /// Who reads the user-data.
    pub(super) seed: Seed,
    /// Bytes a second at which the image is served, by the room instead of the controller; as fast as can be when
    /// there is none.
    pub(super) rate: Option<u64>,
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
            seed: Seed::CosOem,
            rate: None,
        }
    }

    /// Installs it.
    ///
    /// # Errors
    /// At the first thing that is not as it must be.
    pub(super) async fn run(self, given: &'a Given) -> Result<Installed> {
        self.order(given).await?.finish().await
    }

    /// Orders it, up to the machine's power-on.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub(super) async fn order(self, given: &'a Given) -> Result<Ordered<'a>> {
        let mut lab = Lab::with(&given.dir, self.addressing).await?;
        let serve = ServeOptions { address: self.controller, ..ServeOptions::default() };
        let controller = lab.controller(&given.inspection, serve).await?;
        // Zeros of the image are then written, or they are not there.
        let plan = ServerPlan { leftovers: Leftovers::Marks, ..self.plan.clone() };
        let server = lab.server(plan).await?;
        server.machine.hold_resets().await?;
        run::enrol(&controller, &server).await?;
        let user_data = self.seed.user_data(self.room)?;
        let image = match self.rate {
            None => controller.offer(self.file)?,
            Some(rate) => lab.images.offer("slow.img", Served::Slow(self.file.to_owned(), rate)),
        };
        let order = Order { option: self.seed.option(), ..Order::of(&image, self.digest, &user_data) };
        run::provision(&lab, &controller, &server.name, &order).await?;
        run::reaches(&controller, &server.name, "Inspecting", Duration::from_secs(60)).await?;
        let credentials = credentials(&controller.data_dir(), &server.name).await?;
        if !self.bootif {
            lab.serve_to_ipxe(&anonymous(&server.name, credentials.nonce.expose()))?;
        }
        Ok(Ordered { install: self, given, lab, controller, server, user_data, credentials })
    }
}

/// A run under way.
pub(super) struct Ordered<'a> {
    install: Install<'a>,
    given: &'a Given,
    lab: Lab,
    pub(super) controller: Controller,
    pub(super) server: Server,
    user_data: UserData,
    credentials: Credentials,
}

/// What came of a run.
pub(super) struct Installed {
    /// What the agent reported of the machine.
    pub(super) report: Value,
    /// What the installed system told; empty when there is none.
    pub(super) greeting: String,
    /// What was planted for it.
    pub(super) user_data: UserData,
    /// Everything that the machine printed on its serial port.
    pub(super) console: String,
}

impl Ordered<'_> {
    /// Waits for its end, and checks what the disk holds and what boots from it.
    ///
    /// # Errors
    /// At the first thing that is not as it must be.
    pub(super) async fn finish(self) -> Result<Installed> {
        let Self { install, given, lab, controller, server, user_data, credentials } = self;
        let host = run::reaches(&controller, &server.name, "Ready", INSTALL_LIMIT).await?;
        server.machine.held(Duration::from_secs(60)).await?;
        let (disk, seed) = (server.boot_disk(), install.seed);
        let sector = install.plan.disks[0].sector;
        disk_check::holds_image(disk, install.raw, sector, seed.partition(), server.leftovers)?;
        seed.is_planted(disk, sector, &server.name, &user_data)?;
        disk_check::untouched(server.other_disk(), server.leftovers).context("the other disk")?;
        run::machine_is(&controller, &server.name, "Provisioned").await?;
        let mut boots = vec![Boot { cause: Cause::PowerOn, from: BootFrom::Network }];
        let mut greeting = String::new();
        if install.boots {
            server.machine.resume().await?;
            greeting = lab.greetings.first(BOOT_LIMIT).await?;
            let marker = format!(" marker={} ", user_data.marker);
            ensure!(greeting.contains(&marker), "the system reported {greeting:?} without{marker}");
            boots.push(Boot { cause: Cause::GuestReset, from: BootFrom::Disk });
        }
        ensure!(server.machine.boots() == boots, "booted {:?}", server.machine.boots());

        let mut hidden = run::hidden(&controller, &credentials, &server, &user_data)?;
        // The script below names the nonce in a URL, and iPXE prints the URLs it loads.
        hidden.retain(|secret| install.bootif || secret.name != run::NONCE);
        run::none_leaked(&given.dir, &hidden)?;
        let console = String::from_utf8_lossy(&fs::read(&server.serial_log)?).into_owned();
        let report = host["status"]["inspectionReport"].clone();
        Ok(Installed { report, greeting, user_data, console })
    }
}

/// A first stage that asks for the script by itself and does not say by which card it boots.
fn anonymous(host: &str, nonce: &str) -> String {
    format!(
        "#!ipxe\n:dhcp\ndhcp || goto dhcp\n\
         chain http://{CONTROLLER}:{BOOT_PORT}/api/v1/boot/default/{host}/{nonce}?platform=${{platform}}\n"
    )
}
