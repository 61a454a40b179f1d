//! The room's wiring: one bridge for provisioning, one network for BMCs, a tap device for each network card.

use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::trunk::Trunk;
use super::{BMC_NETWORK, CONTROLLER, CONTROLLER6, VLAN_ADDRESS};
use crate::qemu::Plug;
use crate::tool;

const BRIDGE: &str = "br0";
const BMC_LINK: &str = "bmc0";
/// The network of the VLAN.
pub(super) const VLAN_BRIDGE: &str = "br2";

/// A network that leads nowhere: it gives addresses, and its gateway does not exist.
pub(super) const ELSEWHERE: &str = "br1";
/// The room's own address there; whoever is plugged in there cannot use it to reach anything.
const ELSEWHERE_ADDRESS: &str = "10.77.2.1/24";

/// What a network card is plugged into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    /// The provisioning network.
    Provisioning,
    /// A network with a DHCP server and no way to the controller.
    Elsewhere,
    /// The provisioning network, and a VLAN with a network of its own.
    Trunk,
}

impl Wire {
    /// Whether firmware finds the controller by it.
    pub fn leads_to_the_controller(self) -> bool {
        self != Self::Elsewhere
    }
}

/// The wiring; the kernel takes it down with the namespace.
#[derive(Debug)]
pub(super) struct Network {
    trunks: Vec<Trunk>,
    taps: u32,
    bmcs: u8,
    clients: u8,
}

impl Network {
    /// Wires an empty room.
    ///
    /// # Errors
    /// When `ip` fails: not root, or the namespace is in use already.
    pub(super) fn set_up() -> Result<Self> {
        ip("link set lo up")?;
        ip(&format!("link add {BRIDGE} type bridge forward_delay 0 stp_state 0"))?;
        ip(&format!("address add {CONTROLLER}/24 dev {BRIDGE}"))?;
        ip(&format!("link set {BRIDGE} up"))?;
        ip(&format!("link add {ELSEWHERE} type bridge forward_delay 0 stp_state 0"))?;
        ip(&format!("address add {ELSEWHERE_ADDRESS} dev {ELSEWHERE}"))?;
        ip(&format!("link set {ELSEWHERE} up"))?;
        ip(&format!("link add {VLAN_BRIDGE} type bridge forward_delay 0 stp_state 0"))?;
        ip(&format!("address add {VLAN_ADDRESS}/24 dev {VLAN_BRIDGE}"))?;
        ip(&format!("link set {VLAN_BRIDGE} up"))?;
        // Without duplicate address detection, so that it can be listened on at once.
        ip(&format!("address add {CONTROLLER6}/64 dev {BRIDGE} nodad"))?;
        ip(&format!("link add {BMC_LINK} type bridge"))?;
        ip(&format!("link set {BMC_LINK} up"))?;
        Ok(Self { trunks: Vec::new(), taps: 0, bmcs: 0, clients: 0 })
    }

    /// A new port; what it takes is in `dir`.
    pub(super) fn plug(&mut self, wire: Wire, dir: &Path) -> Result<Plug> {
        Ok(match wire {
            Wire::Provisioning => Plug::Tap(self.tap(BRIDGE)?),
            Wire::Elsewhere => Plug::Tap(self.tap(ELSEWHERE)?),
            Wire::Trunk => {
                let (untagged, tagged) = (self.tap(BRIDGE)?, self.tap(VLAN_BRIDGE)?);
                let (trunk, sockets) = Trunk::open(dir, &untagged, &tagged)?;
                self.trunks.push(trunk);
                Plug::Trunk(sockets)
            }
        })
    }

    fn tap(&mut self, bridge: &str) -> Result<String> {
        let name = format!("tap{}", self.taps);
        self.taps += 1;
        ip(&format!("tuntap add {name} mode tap"))?;
        ip(&format!("link set {name} master {bridge} up"))?;
        Ok(name)
    }

    /// A new address on the provisioning network, below those that DHCP gives.
    pub(super) fn client_address(&mut self) -> Result<Ipv4Addr> {
        self.clients += 1;
        let [a, b, c, _] = CONTROLLER.octets();
        let address = Ipv4Addr::new(a, b, c, 10 + self.clients);
        ip(&format!("address add {address}/32 dev {BRIDGE}"))?;
        Ok(address)
    }

    /// A new address in the BMC network.
    pub(super) fn bmc_address(&mut self) -> Result<Ipv4Addr> {
        self.bmcs += 1;
        let [a, b, c, _] = BMC_NETWORK.octets();
        let address = Ipv4Addr::new(a, b, c, self.bmcs);
        ip(&format!("address add {address}/32 dev {BMC_LINK}"))?;
        Ok(address)
    }
}

/// Bytes that the room has handed to the machine at a tap device so far.
pub(super) fn delivered(tap: &str) -> Result<u64> {
    let mut ip = Command::new("ip");
    let text = tool::stdout(ip.args(["-json", "-statistics", "link", "show", "dev", tap]))?;
    let links: Value = serde_json::from_str(&text).context("read what ip says")?;
    // What the device sends is what the machine is given.
    links[0]["stats64"]["tx"]["bytes"].as_u64().with_context(|| format!("ip does not count: {text}"))
}

fn ip(words: &str) -> Result<()> {
    tool::run(Command::new("ip").args(words.split_whitespace()))
}
