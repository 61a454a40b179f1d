//! The controller dies while it serves the image and is told of its progress.

use std::time::Duration;

use anyhow::{Result, ensure};

use super::Given;
use super::run::{self, Order, UserData};
use crate::lab::{Lab, ServeOptions, ServerPlan, until};
use crate::partitions::Sector;
use crate::{disk_check, secrets};

/// How long the controller stays away: longer than any single request waits.
const ABSENCE: Duration = Duration::from_secs(12);

pub(super) async fn run(given: &Given) -> Result<()> {
    let mut lab = Lab::open(&given.dir).await?;
    let mut controller = lab.controller(&given.inspection, ServeOptions::default()).await?;
    let server = lab.server(ServerPlan::new("anvil")).await?;
    server.machine.hold_resets().await?;
    run::enrol(&controller, &server).await?;
    let user_data = UserData::new()?;
    // Served by the controller itself: its death cuts the download as well.
    let image = controller.offer(&given.os.gzip)?;
    let order = Order::of(&image, &given.os.gzip_digest, &user_data);
    run::provision(&lab, &controller, &server.name, &order).await?;

    let admin = controller.admin()?;
    let written = |seen: &serde_json::Value| seen["bytes"].as_u64().filter(|_| seen["step"] == "write");
    let before = until(
        Duration::from_secs(10 * 60),
        "the write to begin",
        async || Ok(admin.progress(&server.name).await.unwrap_or_default()),
        |seen| written(seen).is_some_and(|bytes| bytes > 0),
    )
    .await?;
    controller.kill().await?;
    tokio::time::sleep(ABSENCE).await;
    controller.resume().await?;

    let state = admin.host(&server.name).await?["status"]["state"].clone();
    ensure!(state == "Inspecting" || state == "Deploying", "the controller came back to state {state}");
    let credentials = crate::lab::credentials(&controller.data_dir(), &server.name).await?;
    run::reaches(&controller, &server.name, "Ready", Duration::from_secs(15 * 60)).await?;
    server.machine.held(Duration::from_secs(60)).await?;
    ensure!(server.machine.boots().len() == 1, "the machine was booted again: {:?}", server.machine.boots());
    disk_check::holds_image(server.boot_disk(), &given.os.plain.raw, Sector::B512, "oem")?;
    run::machine_is(&controller, &server.name, "Provisioned").await?;
    println!("killed after {} bytes", written(&before).unwrap_or_default());

    let mut hidden = run::hidden(&credentials, &server);
    hidden.push(user_data.secret.clone());
    let leaks = secrets::leaks(&given.dir, &hidden)?;
    ensure!(leaks.is_empty(), "secrets in logs: {leaks:#?}");
    Ok(())
}
