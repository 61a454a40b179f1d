//! Nonces and tokens that must not count: wrong, expired, used up, somebody else's.
//!
//! The servers here draw power and do nothing; the test plays firmware and agent itself.

mod answer;
mod calls;
mod ended;
mod kept;
mod nonces;
mod tokens;

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, Result};
use farrier_shared::lifecycle::credentials::Credentials;

use super::Given;
use super::run::{self, Order, UserData};
use crate::lab::{Lab, ServeOptions, ServerPlan, age, credentials};
use crate::secrets::Secret;

/// A token of the right form that nobody was given.
const WRONG: &str = "bm90LWEtdG9rZW4tdGhhdC1hbnlib2R5LXdhcy1naXY";
/// Two that are running, one whose credentials run out while it boots, and two whose runs end.
const HOSTS: [&str; 5] = ["mine", "foreign", "late", "done", "failed"];

/// What each host was given for its run.
struct Room(BTreeMap<&'static str, Credentials>);

impl Room {
    fn credentials(&self, host: &str) -> Result<&Credentials> {
        self.0.get(host).with_context(|| format!("there is no host {host}"))
    }

    fn bearer(&self, host: &str) -> Result<String> {
        Ok(format!("Bearer {}", self.credentials(host)?.token.expose()))
    }
}

pub(super) async fn run(given: &Given) -> Result<()> {
    let mut lab = Lab::open(&given.dir).await?;
    let mut controller = lab.controller(&given.inspection, ServeOptions::default()).await?;
    let mut room = Room(BTreeMap::new());
    let mut servers = Vec::new();
    let mut secrets = vec![Secret::text("invented token", WRONG)?];
    for name in HOSTS {
        let server = lab.server(ServerPlan { runs: false, ..ServerPlan::new(name) }).await?;
        run::enrol(&controller, &server).await?;
        let user_data = UserData::new()?;
        let image = lab.images.url("never-fetched.raw");
        let digest = format!("sha256:{}", "0".repeat(64));
        let order = Order::of(&image, &digest, &user_data);
        run::provision(&lab, &controller, name, &order).await?;
        run::reaches(&controller, name, "Inspecting", Duration::from_secs(60)).await?;
        let minted = credentials(&controller.data_dir(), name).await?;
        secrets.extend(run::hidden(&controller, &minted, &server, &user_data)?);
        room.0.insert(name, minted);
        servers.push(server);
    }
    let client = answer::https(&given.dir)?;
    ended::runs(&client, &controller, &room).await?;

    // An hour later.
    controller.kill().await?;
    for name in ["late", "done", "failed"] {
        age(&controller.data_dir(), name).await?;
    }
    controller.resume().await?;

    nonces::refused(&mut lab, &controller, &room).await?;
    tokens::refused(&client, &controller, &room).await?;
    run::none_leaked(&given.dir, &secrets)
}
