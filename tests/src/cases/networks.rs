//! Networks as they are cabled: a card that leads nowhere, a VLAN, IPv6 alone; each with disks of another kind, which
//! have nothing to do with it and would cost a run of their own.

use std::net::Ipv4Addr;

use anyhow::{Result, ensure};
use serde_json::Value;

use super::Given;
use super::install::Install;
use crate::lab::{Addressing, CONTROLLER6, ServerPlan, VLAN_ADDRESS, Wire};
use crate::partitions::Sector;
use crate::qemu::Bus;

pub(super) async fn two(given: &Given) -> Result<()> {
    let wires = [Wire::Elsewhere, Wire::Provisioning];
    let plan = ServerPlan { wires, ..ServerPlan::new("anvil").with_disks(Bus::Nvme, Sector::B512) };
    Install { bootif: false, ..Install::of(&given.os.plain, plan) }.run(given).await?;
    Ok(())
}

/// Firmware and the installed system are in the untagged network, where nothing leads to the controller's address.
pub(super) async fn vlan(given: &Given) -> Result<()> {
    let plan = ServerPlan {
        wires: [Wire::Trunk, Wire::Provisioning],
        options: &[("vlan", "77")],
        ..ServerPlan::new("anvil").with_disks(Bus::Ahci, Sector::B512)
    };
    let usual = Install::of(&given.os.plain, plan);
    let addressing = Addressing::Isolated;
    let installed = Install { addressing, controller: VLAN_ADDRESS.into(), ..usual }.run(given).await?;
    // The contract's report has no VLANs: their address is that of the port below.
    let is_inside =
        |ip: &str| ip.parse::<Ipv4Addr>().is_ok_and(|ip| ip.octets()[..3] == VLAN_ADDRESS.octets()[..3]);
    let addresses: Vec<&str> = installed.report["nics"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|nic| nic["ipAddresses"].as_array())
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    ensure!(
        addresses.iter().any(|ip| is_inside(ip)),
        "no port is reported with an address beside {VLAN_ADDRESS}: {addresses:?}"
    );
    Ok(())
}

/// The firmware boots over IPv4; no agent or system gets an IPv4 address.
pub(super) async fn ipv6(given: &Given) -> Result<()> {
    let plan = ServerPlan::new("anvil").with_disks(Bus::Scsi, Sector::B512);
    let usual = Install::of(&given.os.plain, plan);
    let address = CONTROLLER6.into();
    Install { addressing: Addressing::Ipv6, controller: address, room: address, ..usual }.run(given).await?;
    Ok(())
}
