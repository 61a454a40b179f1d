//! Tokens: wrong, foreign, expired, of a run that is over.

use anyhow::{Result, ensure};
use farrier_shared::contract::paths::Callback;
use reqwest::Client;

use super::answer::alike;
use super::calls::{CALLS, call};
use super::kept::{settled, unchanged};
use super::{Room, WRONG};
use crate::lab::Controller;

pub(super) async fn refused(client: &Client, controller: &Controller, room: &Room) -> Result<()> {
    let token = room.credentials("mine")?.token.expose();
    let nonce = room.credentials("mine")?.nonce.expose();
    let bearers = [
        ("no token", "mine", None),
        ("an empty token", "mine", Some("Bearer ".to_owned())),
        ("another scheme", "mine", Some(format!("Basic {token}"))),
        ("a wrong token", "mine", Some(format!("Bearer {WRONG}"))),
        ("a foreign token", "mine", Some(room.bearer("foreign")?)),
        ("a nonce for a token", "mine", Some(format!("Bearer {nonce}"))),
        ("a token and more", "mine", Some(format!("Bearer {token} {token}"))),
        ("half a token", "mine", Some(format!("Bearer {}", &token[..21]))),
        ("an expired token", "late", Some(room.bearer("late")?)),
        ("the token of a run that succeeded", "done", Some(room.bearer("done")?)),
        ("the token of a run that failed", "failed", Some(room.bearer("failed")?)),
        ("a token for a host that is done", "done", Some(room.bearer("mine")?)),
        ("an unknown host", "nobody", Some(format!("Bearer {token}"))),
    ];
    let before = settled(controller).await?;
    let mut refusals = Vec::new();
    for callback in CALLS {
        for (what, host, bearer) in &bearers {
            refusals.push((*what, call(client, callback, host, bearer.as_deref()).await?));
        }
    }
    alike(&refusals, 401)?;
    ensure!(refusals[0].1.body == r#"{"error":"unauthorized"}"#, "the refusal is {:?}", refusals[0].1);
    unchanged(controller, &before, "a refused token").await?;

    // The same calls with the right token are answered, and seen: it was the token that was refused.
    let served = call(client, Callback::Bootstrap, "mine", Some(&room.bearer("mine")?)).await?;
    ensure!(
        served.status == 200 && served.body.starts_with("#cloud-config"),
        "user-data is {}",
        served.status
    );
    for callback in [Callback::Events, Callback::Logs, Callback::Inspection] {
        let before = settled(controller).await?;
        let answer = call(client, callback, "mine", Some(&room.bearer("mine")?)).await?;
        ensure!(answer.status == 202, "{callback:?} is answered {answer:?}");
        ensure!(settled(controller).await? != before, "{callback:?} changed nothing that is looked at");
    }
    Ok(())
}
