//! The demonstration: one machine from power-on to its installed system, with the commands an operator types.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use crate::lab::{
    CONTROLLER, Controller, GREETING_PORT, Inspection, Lab, ServeOptions, Server, ServerPlan, until,
};
use crate::target_os::TargetOs;

/// From the reboot to the first word of the installed system.
const BOOT_LIMIT: Duration = Duration::from_secs(10 * 60);

/// What the demonstration is given.
#[derive(Debug)]
pub struct Given {
    /// Where it may write.
    pub dir: PathBuf,
    /// The inspection image.
    pub inspection: Inspection,
    /// The operating system to install.
    pub os: TargetOs,
}

/// Gives it, in this process and its namespaces.
///
/// # Errors
/// When anything does not work; the logs stay in the directory.
pub async fn give(given: &Given) -> Result<()> {
    let started = Instant::now();
    say("a room of its own: a network with DHCP and TFTP, which goes when this ends");
    let mut lab = Lab::open(&given.dir).await?;
    say("the controller: farrier serve, with its own CA, database and image server");
    let controller = lab.controller(&given.inspection, ServeOptions::default()).await?;
    let server = lab.server(ServerPlan { packages: 2, ..ServerPlan::new("anvil") }).await?;
    say("a server, off: UEFI firmware, two packages of two cores, two empty disks, a Redfish BMC");
    enrol(given, &controller, &server).await?;
    order(given, &controller).await?;
    say("the BMC boots it from the network once; the agent reports, writes, verifies, plants, reboots");
    farrier(&controller, &["watch", "anvil", "--until", "Ready"]).await?;
    say("installed; the server restarts from its disk, and the new system reports what was planted for it");
    let greeting = lab.greetings.first(BOOT_LIMIT).await?;
    farrier(&controller, &["get", "hosts"]).await?;
    farrier(&controller, &["describe", "host", "anvil"]).await?;
    println!("\n  The installed system says of itself:");
    for fact in greeting.split_whitespace() {
        println!("    {fact}");
    }
    println!(
        "\n  {} s from an empty room to a running system. Logs: {}",
        started.elapsed().as_secs(),
        given.dir.display()
    );
    Ok(())
}

async fn enrol(given: &Given, controller: &Controller, server: &Server) -> Result<()> {
    let manifest = given.dir.join("anvil.yaml");
    fs::write(&manifest, server.manifest())?;
    say("enrol it: the host, and the login and CA of its BMC");
    farrier(controller, &["apply", "-f", &manifest.display().to_string()]).await?;
    let admin = controller.admin()?;
    until(
        Duration::from_secs(60),
        "the host to be Available",
        async || admin.host(&server.name).await,
        |host| host["status"]["state"] == "Available",
    )
    .await?;
    Ok(())
}

async fn order(given: &Given, controller: &Controller) -> Result<()> {
    let user_data = given.dir.join("user-data.yaml");
    let text = format!(
        "#cloud-config\nfarrier-lab:\n  marker: forged-by-farrier\n  report: http://{CONTROLLER}:{GREETING_PORT}/up\n"
    );
    fs::write(&user_data, text)?;
    let image = controller.offer(&given.os.plain.zstd)?;
    say("order an operating system: an image, its digest, and the machine's user-data");
    let user_data = user_data.display().to_string();
    let digest = &given.os.plain.zstd_digest;
    farrier(
        controller,
        &["provision", "anvil", "--image", &image, "--digest", digest, "--user-data", &user_data],
    )
    .await
}

/// Runs a command of the CLI before the eyes of whoever watches.
async fn farrier(controller: &Controller, args: &[&str]) -> Result<()> {
    println!("\n$ farrier {}", args.join(" "));
    std::io::stdout().flush()?;
    let status = controller.command(args).stdin(Stdio::null()).status().await.context("run farrier")?;
    ensure!(status.success(), "farrier {} ended with {status}", args[0]);
    Ok(())
}

fn say(text: &str) {
    println!("\n== {text}");
}
