//! Two links as one, of which each in turn loses its cable while the image is written.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use tokio::time::sleep;

use super::Given;
use super::install::{Install, Ordered};
use super::straight::report_tells_the_nics;
use crate::lab::{Server, ServerPlan, until};
use crate::partitions::MIB;

/// Bytes of the image a second: slow enough that there is a write to disturb, three times.
const RATE: u64 = 3 * MIB / 2;
/// What a link has to bring to be the one that carries the write; more than the other would be told besides.
const CARRIED: u64 = 2 * MIB;
/// What may come by the other: a switch that does not know yet where an address is sends to every port, and a frame of
/// the lab's network may be 64 KiB long.
const STRAYED: u64 = MIB / 2;
/// From a cable's return to the bond's knowledge of it, many times over.
const RETURN: Duration = Duration::from_secs(8);
/// How long the news of what goes on may take.
const MOMENT: Duration = Duration::from_secs(6);
/// From the order to the write.
const WRITE_LIMIT: Duration = Duration::from_secs(10 * 60);
/// How long the image may keep a link waiting: TCP takes its time after a loss.
const CARRY_LIMIT: Duration = Duration::from_secs(60);

pub(super) async fn run(given: &Given) -> Result<()> {
    let plan = ServerPlan { options: &[("bond", "active-backup")], ..ServerPlan::new("anvil") };
    let usual = Install::of(&given.os.plain, plan);
    let ordered = Install { rate: Some(RATE), ..usual }.order(given).await?;
    writing(&ordered, WRITE_LIMIT).await?;

    let first = carrier(&ordered.server).await?;
    let second = 1 - first;
    let machine = &ordered.server.machine;
    machine.plug(first, false).await?;
    carries(&ordered, second).await?;
    machine.plug(first, true).await?;
    sleep(RETURN).await;
    machine.plug(second, false).await?;
    carries(&ordered, first).await?;
    let bytes = writing(&ordered, MOMENT).await?;
    println!("both links were cut in turn, first number {first}; {bytes} bytes were written by then");

    let machine = machine.clone();
    let installed = ordered.finish().await?;
    report_tells_the_nics(&installed.report, machine.hardware())?;
    let console = &installed.console;
    ensure!(console.contains("network is up on bond-farrier"), "the agent did not tell of a bond");
    ensure!(
        !console.contains("the link is lost"),
        "the bond was down though one of its members was up at any time"
    );
    Ok(())
}

/// Waits until the image is being written; how much of it is.
async fn writing(ordered: &Ordered<'_>, limit: Duration) -> Result<u64> {
    let admin = ordered.controller.admin()?;
    let name = &ordered.server.name;
    let bytes = |seen: &Value| seen["bytes"].as_u64().filter(|bytes| *bytes > 0 && seen["step"] == "write");
    let ask = async || Ok(admin.progress(name).await.unwrap_or_default());
    let seen = until(limit, "the image to be written", ask, |seen| bytes(seen).is_some()).await?;
    bytes(&seen).context("there are bytes")
}

/// The number of the network card by which the image comes.
async fn carrier(server: &Server) -> Result<usize> {
    let before = server.delivered()?;
    let grown = |now: &Vec<u64>, nic: usize| now[nic] - before[nic];
    let ask = async || server.delivered();
    let done = |now: &Vec<u64>| (0..2).any(|nic| grown(now, nic) >= CARRIED);
    let now = until(CARRY_LIMIT, "a link to carry the image", ask, done).await?;
    let by = usize::from(grown(&now, 1) > grown(&now, 0));
    let other = grown(&now, 1 - by);
    ensure!(other < STRAYED, "both links carry the image: the other one carried {other} bytes as well");
    Ok(by)
}

/// Checks that the image goes on to come by this card, and that it is still being written then.
async fn carries(ordered: &Ordered<'_>, nic: usize) -> Result<()> {
    let by = carrier(&ordered.server).await?;
    ensure!(by == nic, "the image comes by link {by}, which has no cable");
    writing(ordered, MOMENT).await?;
    Ok(())
}
