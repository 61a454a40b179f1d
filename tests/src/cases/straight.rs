//! From an empty machine to a running system.

use std::fs::{self, File};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::Given;
use super::run::{self, Order, UserData};
use super::seeds::{Seed, provider_id};
use crate::lab::{Lab, ServeOptions, Server, ServerPlan};
use crate::partitions::Sector;
use crate::qemu::{BootEntry, BootFrom, Hardware, Variables};
use crate::redfish::{Boot, Cause};
use crate::{disk_check, lab, partitions};

/// From the order to the installed disk.
const INSTALL_LIMIT: Duration = Duration::from_secs(15 * 60);
/// From the reboot to the first word of the installed system.
const BOOT_LIMIT: Duration = Duration::from_secs(6 * 60);
/// What the operator wants to see.
const STATES: [&str; 6] = ["", "Available", "InUse", "Inspecting", "Deploying", "Ready"];

pub(super) async fn run(given: &Given) -> Result<()> {
    let mut lab = Lab::open(&given.dir).await?;
    let controller = lab.controller(&given.inspection, ServeOptions::default()).await?;
    let server = lab.server(ServerPlan { packages: 2, ..ServerPlan::new("anvil") }).await?;
    server.machine.hold_resets().await?;
    let watched = given.dir.join("watch.jsonl");
    let watch = controller
        .command(&["watch", "--output", "json"])
        .stdin(Stdio::null())
        .stdout(File::create(&watched)?)
        .stderr(File::create(given.dir.join("watch.log"))?)
        .spawn()
        .context("start farrier watch")?;

    run::enrol(&controller, &server).await?;
    let user_data = UserData::new()?;
    let image = controller.offer(&given.os.plain.zstd)?;
    let order = Order::of(&image, &given.os.plain.zstd_digest, &user_data);
    run::provision(&lab, &controller, &server.name, &order).await?;
    run::reaches(&controller, &server.name, "Inspecting", Duration::from_secs(60)).await?;
    let credentials = lab::credentials(&controller.data_dir(), &server.name).await?;
    let host = run::reaches(&controller, &server.name, "Ready", INSTALL_LIMIT).await?;
    server.machine.held(Duration::from_secs(60)).await?;

    disk_holds_what_was_ordered(given, &server, &user_data)?;
    firmware_boots_it_after_the_network(&server)?;
    report_tells_the_hardware(&host["status"]["inspectionReport"], server.machine.hardware())?;
    ensure!(run::states(&controller, &server.name).await? == STATES, "the history tells other states");
    progress_was_shown(&fs::read_to_string(&watched)?)?;
    drop(watch);

    server.machine.resume().await?;
    let greeting = lab.greetings.first(BOOT_LIMIT).await?;
    system_has_what_was_planted(&greeting, &user_data, &server)?;
    let serial = fs::read(&server.serial_log)?;
    let serial = String::from_utf8_lossy(&serial);
    let announced = format!("FARRIER-TARGET-OS up: user-data sha256={}", sha256(&user_data.text));
    ensure!(serial.contains(&announced), "the system did not announce itself on its console");
    let machine = run::machine_is(&controller, &server.name, "Provisioned").await?;
    ensure!(machine["status"]["ready"] == true, "the machine is not ready: {machine}");
    let expected = [
        Boot { cause: Cause::PowerOn, from: BootFrom::Network },
        Boot { cause: Cause::GuestReset, from: BootFrom::Disk },
    ];
    ensure!(server.machine.boots() == expected, "booted {:?}", server.machine.boots());

    run::no_secret_is_told(&given.dir, &controller, &credentials, &server, &user_data)
}

fn disk_holds_what_was_ordered(given: &Given, server: &Server, user_data: &UserData) -> Result<()> {
    let (disk, before, seed) = (server.boot_disk(), server.leftovers, Seed::CosOem);
    disk_check::holds_image(disk, &given.os.plain.raw, Sector::B512, seed.partition(), before)?;
    seed.is_planted(disk, Sector::B512, &server.name, user_data)?;
    disk_check::untouched(server.other_disk(), before).context("the other disk")
}

/// One entry for the installed system, right behind those of the network.
fn firmware_boots_it_after_the_network(server: &Server) -> Result<()> {
    let esp = disk_check::part(&partitions::read(server.boot_disk(), Sector::B512)?, "esp")?;
    let order = Variables::read(&server.variables)?.boot_order()?;
    let names: Vec<&str> = order.iter().map(|entry| entry.name.as_str()).collect();
    let own: Vec<usize> = (0..order.len()).filter(|at| order[*at].name == "Farrier").collect();
    let [own] = own[..] else { bail!("not one entry of ours in {names:?}") };
    ensure!(order[own].leads_to(esp.guid), "our entry leads elsewhere");
    // A MAC address in its path makes an entry one of the network.
    let is_network = |entry: &BootEntry| entry.has_node(3, 11);
    ensure!(own > 0 && order[..own].iter().all(is_network), "before it stand {:?}", &names[..own]);
    ensure!(!order[own..].iter().any(is_network), "behind it stand {:?}", &names[own..]);
    Ok(())
}

fn report_tells_the_hardware(report: &Value, hardware: &Hardware) -> Result<()> {
    let system = [
        ("manufacturer", hardware.manufacturer.as_str()),
        ("model", &hardware.product),
        ("serialNumber", &hardware.serial),
        ("bootModeDetected", "UEFI"),
    ];
    for (key, expected) in system {
        ensure!(report[key] == expected, "{key} is {} instead of {expected}", report[key]);
    }
    let list = |key: &str| report[key].as_array().cloned().unwrap_or_default();
    let cores: Vec<_> = list("cpus").iter().map(|cpu| cpu["cores"].as_u64()).collect();
    let expected = vec![Some(u64::from(hardware.cores)); usize::try_from(hardware.sockets)?];
    ensure!(cores == expected, "cores are {cores:?} instead of {expected:?}");
    let memory: Vec<_> = list("memory").iter().map(|module| module["capacity"].clone()).collect();
    ensure!(memory == [json!(format!("{}MiB", hardware.memory_mib))], "memory is {memory:?}");
    let mut disks: Vec<_> =
        list("disks").iter().map(|disk| (disk["serialNumber"].clone(), disk["sizeGB"].clone())).collect();
    disks.sort_by_key(|(serial, _)| serial.to_string());
    let expected: Vec<_> =
        hardware.disks.iter().map(|disk| (json!(disk.serial), json!(disk.size / 1_000_000_000))).collect();
    ensure!(disks == expected, "disks are {disks:?} instead of {expected:?}");
    report_tells_the_nics(report, hardware)
}

/// By the addresses they were made with, also where one of them wears another's.
pub(super) fn report_tells_the_nics(report: &Value, hardware: &Hardware) -> Result<()> {
    let nics = report["nics"].as_array().cloned().unwrap_or_default();
    let mut nics: Vec<_> = nics.iter().map(|nic| nic["macAddress"].clone()).collect();
    nics.sort_by_key(ToString::to_string);
    let expected: Vec<_> = hardware.nics.iter().map(|nic| json!(nic.mac)).collect();
    ensure!(nics == expected, "NICs are {nics:?} instead of {expected:?}");
    Ok(())
}

/// The lines of `farrier watch`: every state in order, and a write whose bytes grow and stay within its total.
fn progress_was_shown(lines: &str) -> Result<()> {
    let lines: Vec<Value> = lines.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let mut states: Vec<&str> = lines.iter().filter_map(|line| line["state"].as_str()).collect();
    states.dedup();
    // A state may pass between two looks; none may come out of order.
    let mut rest = STATES.iter();
    ensure!(states.iter().all(|state| rest.any(|known| known == state)), "watch showed {states:?}");
    ensure!(states.last() == Some(&"Ready"), "watch ended with {states:?}");
    let counts = |line: &Value| Some((line["bytes"].as_u64()?, line["total"].as_u64()?));
    let counts: Vec<(u64, u64)> =
        lines.iter().filter(|line| line["state"] == "Deploying").filter_map(counts).collect();
    ensure!(counts.iter().any(|(bytes, _)| *bytes > 0), "watch showed no progress of the write");
    for pair in counts.windows(2) {
        let ((before, total), (after, same)) = (pair[0], pair[1]);
        // A step of its own counts anew, up to a total of its own.
        ensure!(total != same || before <= after || after == 0, "the count fell: {counts:?}");
        ensure!(before <= total && after <= same, "the count exceeds its total: {counts:?}");
    }
    Ok(())
}

fn system_has_what_was_planted(greeting: &str, user_data: &UserData, server: &Server) -> Result<()> {
    let expected = format!(
        "user-data sha256={} mode=600:0:0 marker={} provider-id={} provider-id-mode=600:0:0 ",
        sha256(&user_data.text),
        user_data.marker,
        provider_id(&server.name)
    );
    ensure!(greeting.starts_with(&expected), "the system reported {greeting:?} instead of {expected:?}");
    Ok(())
}

/// As `sha256sum` prints it.
pub(super) fn sha256(text: &str) -> String {
    hex::encode(Sha256::digest(text.as_bytes()))
}
