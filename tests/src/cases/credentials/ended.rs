//! What a token is good for once its run has ended: five minutes, in which an agent that heard no answer says it again.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use farrier_shared::contract::Time;
use farrier_shared::contract::paths::Callback;
use reqwest::Client;

use super::Room;
use super::calls::{REASON, call};
use super::kept::{settled, unchanged};
use crate::cases::run;
use crate::lab::{Controller, credentials, until};

/// How long a token lasts behind the end of its run.
const GRACE: Duration = Duration::from_secs(5 * 60);
/// How long the controller may take for each step.
const LIMIT: Duration = Duration::from_secs(60);

/// Has one run succeed and another fail, and checks what their tokens still do.
pub(super) async fn runs(client: &Client, controller: &Controller, room: &Room) -> Result<()> {
    play(client, controller, room, "done", Callback::Provisioned, "Ready").await?;
    play(client, controller, room, "failed", Callback::ProvisionFailed, "Error").await?;
    let why = controller.admin()?.host("failed").await?["status"]["errorMessage"].to_string();
    ensure!(why.contains(REASON), "the host failed for another reason: {why}");
    run::machine_is(controller, "done", "Provisioned").await?;
    run::machine_is(controller, "failed", "Failed").await?;
    for host in ["done", "failed"] {
        is_cut(controller, room, host).await.with_context(|| format!("the token of {host}"))?;
    }
    // Said again, and said otherwise: what ended stays as it ended.
    let before = settled(controller).await?;
    for host in ["done", "failed"] {
        for again in [Callback::Provisioned, Callback::ProvisionFailed] {
            let answer = call(client, again, host, Some(&room.bearer(host)?)).await?;
            ensure!(answer.status == 202, "{again:?} of {host} is answered {answer:?}");
        }
    }
    let after = settled(controller).await?;
    unchanged(controller, &before, "a report after the end").await?;
    ensure!(after == before, "a report after the end changed something for a while");
    let answer = call(client, Callback::Bootstrap, "failed", Some(&room.bearer("failed")?)).await?;
    ensure!(answer.status == 404, "a failed run gets user-data: {}", answer.status);
    Ok(())
}

/// An agent that reports what it found and how it ended.
async fn play(
    client: &Client,
    controller: &Controller,
    room: &Room,
    host: &str,
    end: Callback,
    state: &str,
) -> Result<()> {
    let bearer = room.bearer(host)?;
    let told = call(client, Callback::Inspection, host, Some(&bearer)).await?;
    ensure!(told.status == 202, "the report of {host} is answered {told:?}");
    run::reaches(controller, host, "Deploying", LIMIT).await?;
    let told = call(client, end, host, Some(&bearer)).await?;
    ensure!(told.status == 202, "the end of {host} is answered {told:?}");
    let admin = controller.admin()?;
    let is_there = |host: &serde_json::Value| host["status"]["state"] == state;
    until(LIMIT, &format!("{host} to be {state}"), async || admin.host(host).await, is_there).await?;
    Ok(())
}

/// Waits until the token of a run that has ended is, too, about to.
async fn is_cut(controller: &Controller, room: &Room, host: &str) -> Result<()> {
    let minted = room.credentials(host)?;
    let now = || -> Result<Time> {
        let since = std::time::UNIX_EPOCH.elapsed().context("the clock is before 1970")?;
        Ok(Time::from_unix(i64::try_from(since.as_secs())?))
    };
    let dir = controller.data_dir();
    let ask = async || Ok(credentials(&dir, host).await?.token_expires_at);
    let cut = until(LIMIT, "its end to come near", ask, |end| *end < minted.token_expires_at).await?;
    ensure!(cut.since(now()?) <= GRACE, "it ends at {cut}, later than {GRACE:?} from now");
    ensure!(cut.since(now()?) > Duration::ZERO, "it ended at once, at {cut}");
    let left = credentials(&dir, host).await?;
    ensure!(left.token.matches(minted.token.expose()), "it is another token now");
    Ok(())
}
