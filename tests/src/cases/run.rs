//! Steps that cases share: a host enrolled, a system ordered, the end of a run.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use farrier_shared::lifecycle::credentials::Credentials;
use serde_json::Value;

use super::seeds::Seed;
use crate::lab::{CONTROLLER, Controller, Lab, Server, until};
use crate::secrets::{self, Secret};

/// From applying a host to `Available`.
const ENROL_LIMIT: Duration = Duration::from_secs(60);

/// What a run's boot nonce is called among [`hidden`] secrets.
pub(super) const NONCE: &str = "nonce";

/// User-data of one run: a marker that may be told and a secret that may not.
#[derive(Debug)]
pub(super) struct UserData {
    /// The text as planted.
    pub(super) text: String,
    /// What the installed system tells.
    pub(super) marker: String,
    /// What it does not.
    pub(super) secret: Secret,
}

impl UserData {
    /// For the usual system in the usual room.
    pub(super) fn new() -> Result<Self> {
        Seed::CosOem.user_data(CONTROLLER.into())
    }
}

/// Applies a server's manifest and waits until the controller has seen its BMC.
pub(super) async fn enrol(controller: &Controller, server: &Server) -> Result<()> {
    controller.cli(&["apply", "-f", "-"], &server.manifest()).await?.success()?;
    reaches(controller, &server.name, "Available", ENROL_LIMIT).await?;
    Ok(())
}

/// What to install.
pub(super) struct Order<'a> {
    pub(super) image: &'a str,
    pub(super) digest: &'a str,
    pub(super) user_data: &'a UserData,
    pub(super) disk: Option<&'a str>,
    /// An option for the agent.
    pub(super) option: Option<&'a str>,
}

impl<'a> Order<'a> {
    /// On whatever disk the agent takes, and with the options of the host alone.
    pub(super) fn of(image: &'a str, digest: &'a str, user_data: &'a UserData) -> Self {
        Self { image, digest, user_data, disk: None, option: None }
    }
}

/// Orders an operating system the short way.
pub(super) async fn provision(
    lab: &Lab,
    controller: &Controller,
    host: &str,
    order: &Order<'_>,
) -> Result<()> {
    let file = lab.dir.join(format!("{host}.user-data"));
    fs::write(&file, &order.user_data.text)?;
    let file = file.display().to_string();
    let mut args = vec!["provision", host, "--image", order.image, "--digest", order.digest];
    args.extend(["--user-data", &file]);
    if let Some(disk) = order.disk {
        args.extend(["--disk", disk]);
    }
    if let Some(option) = order.option {
        args.extend(["--option", option]);
    }
    let said = controller.cli(&args, "").await?;
    said.success().context("order the operating system")?;
    Ok(())
}

/// Waits until a host is in a state, and returns the host; fails at once when its run failed.
pub(super) async fn reaches(
    controller: &Controller,
    host: &str,
    state: &str,
    limit: Duration,
) -> Result<Value> {
    let admin = controller.admin()?;
    let seen = until(
        limit,
        &format!("host {host} to be {state}"),
        async || admin.host(host).await,
        |host| host["status"]["state"] == state || host["status"]["state"] == "Error",
    )
    .await?;
    ensure!(
        seen["status"]["state"] == state,
        "host {host} is {} instead of {state}: {}",
        seen["status"]["state"],
        seen["status"]["errorMessage"]
    );
    Ok(seen)
}

/// The one machine, once it has the phase.
pub(super) async fn machine_is(controller: &Controller, name: &str, phase: &str) -> Result<Value> {
    let admin = controller.admin()?;
    let pick = |list: &Value| -> Value {
        let items = list["items"].as_array().cloned().unwrap_or_default();
        items.into_iter().find(|machine| machine["metadata"]["name"] == name).unwrap_or_default()
    };
    until(
        Duration::from_secs(60),
        &format!("machine {name} to be {phase}"),
        async || Ok(pick(&admin.list("machines").await?)),
        |machine| machine["status"]["phase"] == phase,
    )
    .await
}

/// The states a host went through, in order, from its history.
pub(super) async fn states(controller: &Controller, host: &str) -> Result<Vec<String>> {
    let mut states: Vec<String> = Vec::new();
    for entry in controller.admin()?.history(host).await? {
        for key in ["from", "to"] {
            let state = entry[key].as_str().unwrap_or_default().to_owned();
            if states.last() != Some(&state) {
                states.push(state);
            }
        }
    }
    Ok(states)
}

/// Checks that no log of the case holds a secret of this run.
pub(super) fn no_secret_is_told(
    dir: &Path,
    controller: &Controller,
    credentials: &Credentials,
    server: &Server,
    user_data: &UserData,
) -> Result<()> {
    none_leaked(dir, &hidden(controller, credentials, server, user_data)?)
}

/// Checks that no log of the case holds any of these.
pub(super) fn none_leaked(dir: &Path, hidden: &[Secret]) -> Result<()> {
    let leaks = secrets::leaks(dir, hidden)?;
    ensure!(leaks.is_empty(), "secrets in logs: {leaks:#?}");
    Ok(())
}

/// What must be in no log: the run's token and nonce, the BMC's password, the user-data, the controller's keys.
pub(super) fn hidden(
    controller: &Controller,
    credentials: &Credentials,
    server: &Server,
    user_data: &UserData,
) -> Result<Vec<Secret>> {
    let key = |name, file: &str| {
        let file = controller.data_dir().join("tls").join(file);
        let pem = fs::read_to_string(&file).with_context(|| format!("read {}", file.display()))?;
        Secret::key(name, &pem)
    };
    Ok(vec![
        Secret::text("token", credentials.token.expose())?,
        Secret::text(NONCE, credentials.nonce.expose())?,
        Secret::text("BMC password", &server.bmc.login.password)?,
        key("CA key", "ca.key")?,
        key("serving key", "tls.key")?,
        user_data.secret.clone(),
    ])
}
