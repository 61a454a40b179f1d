//! Runs that cannot succeed: each ends with a reason, a machine switched off, a disk that boots nothing, and the other
//! disk as it was.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use super::Given;
use super::run::{self, Order, UserData};
use crate::archive;
use crate::disk_check;
use crate::lab::{DiskPlan, Lab, ServeOptions, Served, ServerPlan, credentials, until};
use crate::leftovers::Leftovers;
use crate::partitions::{MIB, Sector};
use crate::qemu::{BootFrom, Bus};
use crate::redfish::{Boot, Cause};
use crate::synthetic::{Oem, image};

/// From the order to the failure, the boot included.
const LIMIT: Duration = Duration::from_secs(10 * 60);
/// What the contract puts before every reason of an agent.
const PREFIX: &str = "inspector reported deploy failure: ";

/// A run that is to fail.
struct Doomed<'a> {
    /// What is offered, how, and under which digest.
    image: String,
    digest: String,
    disk: Option<&'a str>,
    /// The machine.
    plan: ServerPlan,
    /// Words the reason must have: step, then cause.
    reason: &'a [&'a str],
    /// Whether it must have ended before the first write.
    untouched: bool,
}

impl Default for Doomed<'_> {
    fn default() -> Self {
        Self {
            image: String::new(),
            digest: format!("sha256:{}", "0".repeat(64)),
            disk: None,
            plan: small([64 * MIB, 96 * MIB], Sector::B512),
            reason: &[],
            untouched: false,
        }
    }
}

/// A machine with two disks of these sizes, both of which hold something.
fn small(sizes: [u64; 2], sector: Sector) -> ServerPlan {
    let [first, second] = sizes;
    let disks = [(Bus::Virtio, first), (Bus::Nvme, second)].map(|(bus, size)| DiskPlan { bus, size, sector });
    ServerPlan { disks, leftovers: Leftovers::Marks, memory_mib: 1024, ..ServerPlan::new("anvil") }
}

/// An image of so many MiB as it should be: its URL and digest.
fn whole(given: &Given, lab: &Lab, mib: u64, oem: Oem) -> Result<(String, String)> {
    let file = image(&given.dir.join("small.raw"), mib, oem)?;
    let digest = archive::digest(&file)?;
    Ok((lab.images.offer("small.raw", Served::Whole(file)), digest))
}

pub(super) async fn wrong_digest(given: &Given) -> Result<()> {
    let lab = Lab::open(&given.dir).await?;
    let file = image(&given.dir.join("tiny.raw"), 8, Oem::Present)?;
    let image = lab.images.offer("tiny.raw", Served::Whole(file));
    fails(
        given,
        lab,
        Doomed { image, reason: &["write", "digest mismatch", "expected", "got"], ..Doomed::default() },
    )
    .await
}

pub(super) async fn truncated(given: &Given) -> Result<()> {
    let lab = Lab::open(&given.dir).await?;
    let file = image(&given.dir.join("tiny.raw"), 8, Oem::Present)?;
    let digest = archive::digest(&file)?;
    let image = lab.images.offer("tiny.raw", Served::CutAt(file, 5 * MIB));
    fails(given, lab, Doomed { image, digest, reason: &["fetch", "bytes"], ..Doomed::default() }).await
}

pub(super) async fn too_large(given: &Given) -> Result<()> {
    let lab = Lab::open(&given.dir).await?;
    let (image, digest) = whole(given, &lab, 24, Oem::Present)?;
    fails(
        given,
        lab,
        Doomed {
            image,
            digest,
            plan: small([16 * MIB, 12 * MIB], Sector::B512),
            reason: &["disk", "at least 31457280 bytes", "16777216 bytes"],
            untouched: true,
            ..Doomed::default()
        },
    )
    .await
}

pub(super) async fn foreign_sectors(given: &Given) -> Result<()> {
    let lab = Lab::open(&given.dir).await?;
    let (image, digest) = whole(given, &lab, 8, Oem::Present)?;
    fails(
        given,
        lab,
        Doomed {
            image,
            digest,
            plan: small([64 * MIB, 96 * MIB], Sector::B4096),
            reason: &["made for 512-byte sectors", "4096"],
            untouched: true,
            ..Doomed::default()
        },
    )
    .await
}

pub(super) async fn image_absent(given: &Given) -> Result<()> {
    let lab = Lab::open(&given.dir).await?;
    let image = lab.images.url("nothing.raw");
    fails(given, lab, Doomed { image, reason: &["fetch", "404"], untouched: true, ..Doomed::default() }).await
}

pub(super) async fn disk_absent(given: &Given) -> Result<()> {
    let lab = Lab::open(&given.dir).await?;
    let (image, digest) = whole(given, &lab, 8, Oem::Present)?;
    let disk = Some("/dev/vdz");
    fails(
        given,
        lab,
        Doomed { image, digest, disk, reason: &["disk", "/dev/vdz"], untouched: true, ..Doomed::default() },
    )
    .await
}

pub(super) async fn no_cos_oem(given: &Given) -> Result<()> {
    let lab = Lab::open(&given.dir).await?;
    let (image, digest) = whole(given, &lab, 8, Oem::Absent)?;
    fails(given, lab, Doomed { image, digest, reason: &["seed", "COS_OEM"], ..Doomed::default() }).await
}

async fn fails(given: &Given, mut lab: Lab, doomed: Doomed<'_>) -> Result<()> {
    let controller = lab.controller(&given.inspection, ServeOptions::default()).await?;
    let server = lab.server(doomed.plan.clone()).await?;
    run::enrol(&controller, &server).await?;
    let user_data = UserData::new()?;
    let order = Order { disk: doomed.disk, ..Order::of(&doomed.image, &doomed.digest, &user_data) };
    run::provision(&lab, &controller, &server.name, &order).await?;

    let admin = controller.admin()?;
    let host = until(
        LIMIT,
        "the run to fail",
        async || admin.host(&server.name).await,
        |host| matches!(host["status"]["state"].as_str(), Some("Error" | "Ready")),
    )
    .await?;
    let state = &host["status"]["state"];
    ensure!(state == "Error", "the host is {state}: the run succeeded");
    let message = host["status"]["errorMessage"].as_str().unwrap_or_default();
    println!("reason: {message}");
    let reason = message.strip_prefix(PREFIX).with_context(|| format!("not the agent's: {message:?}"))?;
    for word in doomed.reason {
        ensure!(reason.contains(word), "the reason {reason:?} does not say {word:?}");
    }
    run::machine_is(&controller, &server.name, "Failed").await?;
    let told = controller.cli(&["watch", &server.name, "--until", "Ready"], "").await?;
    ensure!(told.code == Some(1) && told.err.contains(reason), "watch said {told:?}");

    server.machine.off(Duration::from_secs(90)).await.context("a failed machine stays off")?;
    let expected = [Boot { cause: Cause::PowerOn, from: BootFrom::Network }];
    ensure!(server.machine.boots() == expected, "booted {:?}", server.machine.boots());
    let chosen = server.boot_disk();
    if doomed.untouched {
        disk_check::untouched(chosen, server.leftovers).context("the disk that would have been written")?;
    } else {
        disk_check::boots_nothing(chosen).context("the disk that was written")?;
    }
    disk_check::untouched(server.other_disk(), server.leftovers).context("the other disk")?;
    let credentials = credentials(&controller.data_dir(), &server.name).await?;
    run::no_secret_is_told(&given.dir, &controller, &credentials, &server, &user_data)
}
