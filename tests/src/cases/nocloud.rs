//! Debian's own cloud-init reads what was planted for it.

use anyhow::{Context as _, Result, ensure};

use super::Given;
use super::install::Install;
use super::seeds::{Seed, provider_id};
use super::straight::sha256;
use crate::lab::ServerPlan;

pub(super) async fn run(given: &Given) -> Result<()> {
    let os = given.cloud_os.as_ref().context("the image with cloud-init was not built")?;
    let usual = Install::of(&os.image, ServerPlan::new("anvil"));
    let installed = Install { seed: Seed::NoCloud, ..usual }.run(given).await?;
    let id = provider_id("anvil");
    let (text, marker) = (&installed.user_data.text, &installed.user_data.marker);
    // What cloud-init keeps, what it was told to write and to run, whom it takes the machine for, and how it ended.
    let expected = [
        format!("user-data sha256={}", sha256(text)),
        format!("told-mode=640:0:0 marker={marker}"),
        format!("bootcmd={id} runcmd={marker}"),
        format!("instance-id={id} local-hostname=anvil hostname=anvil"),
        r#"result={"v1":{"datasource":"DataSourceNoCloud[seed=/var/lib/cloud/seed/nocloud][dsmode=net]","errors":[]}}"#
            .to_owned(),
        "complaints=0 version=".to_owned(),
    ]
    .join(" ");
    let greeting = &installed.greeting;
    ensure!(greeting.starts_with(&expected), "the system reported {greeting:?} instead of {expected:?}");
    let announced = format!("FARRIER-TARGET-OS up: {expected}");
    ensure!(installed.console.contains(&announced), "the system did not announce itself on its console");
    Ok(())
}
