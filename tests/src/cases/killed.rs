//! The controller dies while it serves the image and is told of its progress.

use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::Given;
use super::run::{self, Order, UserData};
use crate::disk_check;
use crate::lab::{Lab, ServeOptions, ServerPlan, until};
use crate::leftovers::Leftovers;
use crate::partitions::Sector;

/// How long the controller stays away: longer than any single request waits.
const ABSENCE: Duration = Duration::from_secs(12);

pub(super) async fn run(given: &Given) -> Result<()> {
    let mut lab = Lab::open(&given.dir).await?;
    let mut controller = lab.controller(&given.inspection, ServeOptions::default()).await?;
    let server = lab.server(ServerPlan { leftovers: Leftovers::Marks, ..ServerPlan::new("anvil") }).await?;
    server.machine.hold_resets().await?;
    run::enrol(&controller, &server).await?;
    let user_data = UserData::new()?;
    // Served by the controller itself: its death cuts the download as well.
    let image = controller.offer(&given.os.gzip)?;
    let order = Order::of(&image, &given.os.gzip_digest, &user_data);
    run::provision(&lab, &controller, &server.name, &order).await?;

    let admin = controller.admin()?;
    let written = |seen: &Value| seen["bytes"].as_u64().filter(|_| seen["step"] == "write");
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
    disk_check::holds_image(server.boot_disk(), &given.os.plain.raw, Sector::B512, "oem", server.leftovers)?;
    disk_check::untouched(server.other_disk(), server.leftovers).context("the other disk")?;
    run::machine_is(&controller, &server.name, "Provisioned").await?;
    let (told, all) = (written(&before).unwrap_or_default(), fs::metadata(&given.os.gzip)?.len());
    let console = String::from_utf8_lossy(&fs::read(&server.serial_log)?).into_owned();
    let received = interrupted(&console).context("the agent's download was never interrupted")?;
    // The write is behind the download: not all was received, so not all was written.
    ensure!(
        0 < told && told <= received && received < all,
        "killed when {told} bytes were told to be written and {received} of {all} received: not in the write"
    );
    println!("killed after {told} bytes of {all} were told to be written, {received} received");

    run::no_secret_is_told(&given.dir, &controller, &credentials, &server, &user_data)
}

/// How many bytes the agent had when its download first broke off.
fn interrupted(console: &str) -> Option<u64> {
    let (_, told) = console.split_once("image download interrupted")?;
    let (_, count) = told.lines().next()?.split_once(" received=")?;
    count.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::interrupted;

    #[test]
    fn the_first_interruption_is_read_off_the_console() {
        let line = |n| {
            format!(
                "[ 1.2]  WARN image download interrupted host=\"h:1\" received={n} attempt=1 cause=x\r\r\n"
            )
        };
        let console = format!("[ 1.1]  INFO received=9\r\n{}{}", line(7), line(8));
        assert_eq!(interrupted(&console), Some(7));
        assert_eq!(interrupted("[ 1.1]  INFO received=9\r\n"), None);
    }
}
