//! DHCP and TFTP: firmware gets iPXE, iPXE gets the controller's first stage.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, Result};
use tokio::process::{Child, Command};

use super::Addressing;
use super::network::{ELSEWHERE, VLAN_BRIDGE};

/// iPXE for UEFI that drives the card through the firmware.
const IPXE: &str = "/usr/lib/ipxe/snponly.efi";
/// The script operators serve, unchanged: it asks the sender of the boot file on port 8080.
const FIRST_STAGE: &str = include_str!("../../../ipxe/first-stage.ipxe");

/// What iPXE is told to load.
const SCRIPT: &str = "first-stage.ipxe";

/// A dnsmasq process; killed when dropped.
#[derive(Debug)]
pub(super) struct BootServer {
    _child: Child,
    tftp: PathBuf,
}

impl BootServer {
    /// Starts it; its log is `dnsmasq.log` in `dir`.
    ///
    /// # Errors
    /// When dnsmasq or iPXE is not installed.
    pub(super) fn start(dir: &Path, addressing: Addressing) -> Result<Self> {
        let tftp = dir.join("tftp");
        fs::create_dir_all(&tftp)?;
        fs::copy(IPXE, tftp.join("snponly.efi")).context("copy iPXE; `make deps` installs it")?;
        let log = File::create(dir.join("dnsmasq.log"))?;
        fs::write(tftp.join(SCRIPT), FIRST_STAGE)?;
        let child = Command::new("dnsmasq")
            .args(["--keep-in-foreground", "--conf-file=/dev/null", "--port=0", "--user=root"])
            .args(["--log-facility=-", "--log-dhcp", "--pid-file="])
            .args(["--interface=br0", "--bind-interfaces", "--dhcp-authoritative", "--no-ping"])
            .args(["--dhcp-range=10.77.0.100,10.77.0.199,255.255.255.0,10m", "--dhcp-match=set:ipxe,175"])
            .args(other_networks())
            .args(addresses(addressing))
            .arg("--dhcp-boot=tag:!other,tag:!ipxe,snponly.efi")
            .arg(format!("--dhcp-boot=tag:!other,tag:ipxe,{SCRIPT}"))
            // iPXE waits for no other server's boot offers.
            .arg("--dhcp-option=tag:ipxe,encap:175,176,1b")
            .arg("--enable-tftp")
            .arg(format!("--tftp-root={}", tftp.canonicalize()?.display()))
            .arg(format!("--dhcp-leasefile={}", dir.join("leases").display()))
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .context("start dnsmasq; `make deps` installs it")?;
        Ok(Self { _child: child, tftp })
    }

    pub(super) fn serve_to_ipxe(&self, script: &str) -> Result<()> {
        // Renamed into place, so that nobody is served half of it.
        let partial = self.tftp.join("partial");
        fs::write(&partial, script)?;
        fs::rename(partial, self.tftp.join(SCRIPT)).context("replace what iPXE loads")
    }
}

/// Addresses in the networks besides the provisioning network; nothing to boot there.
fn other_networks() -> Vec<String> {
    let mut arguments = Vec::new();
    for (name, bridge, prefix) in [("elsewhere", ELSEWHERE, "10.77.2"), ("vlan", VLAN_BRIDGE, "10.77.3")] {
        arguments.push(format!("--interface={bridge}"));
        arguments.push(format!("--dhcp-range=set:{name},{prefix}.100,{prefix}.199,255.255.255.0,10m"));
        arguments.push(format!("--tag-if=set:other,tag:{name}"));
    }
    // A gateway that does not answer, and none at all.
    arguments.push("--dhcp-option=tag:elsewhere,option:router,10.77.2.254".to_owned());
    arguments.push("--dhcp-option=tag:vlan,option:router".to_owned());
    arguments
}

fn addresses(addressing: Addressing) -> Vec<String> {
    match addressing {
        Addressing::Routed => Vec::new(),
        Addressing::Isolated => vec!["--dhcp-option=tag:!other,option:router".to_owned()],
        Addressing::Ipv6 => vec![
            "--enable-ra".to_owned(),
            // Addresses by router advertisement and by DHCPv6, as the machine likes.
            "--dhcp-range=fd00:77::100,fd00:77::1ff,slaac,64,10m".to_owned(),
            // Both firmware and iPXE say that they are PXE clients.
            "--dhcp-vendorclass=set:firmware,PXEClient".to_owned(),
            "--dhcp-ignore=tag:!firmware,tag:!dhcpv6".to_owned(),
        ],
    }
}
