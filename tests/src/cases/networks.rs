//! Networks as they are cabled.

use anyhow::Result;

use super::Given;
use super::install::Install;
use crate::lab::{ServerPlan, Wire};

pub(super) async fn two(given: &Given) -> Result<()> {
    let wires = [Wire::Elsewhere, Wire::Provisioning];
    let plan = ServerPlan { wires, ..ServerPlan::new("anvil") };
    Install { bootif: false, ..Install::of(&given.os.plain, plan) }.run(given).await?;
    Ok(())
}
