//! DHCP and TFTP: firmware gets iPXE, iPXE gets the controller's first stage.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, Result};
use tokio::process::{Child, Command};

use super::network::ELSEWHERE;

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
    pub(super) fn start(dir: &Path) -> Result<Self> {
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
            // The other network has a gateway that does not answer, and nothing to boot.
            .arg(format!("--interface={ELSEWHERE}"))
            .args(["--dhcp-range=set:elsewhere,10.77.2.100,10.77.2.199,255.255.255.0,10m"])
            .arg("--dhcp-option=tag:elsewhere,option:router,10.77.2.254")
            .arg("--dhcp-boot=tag:!elsewhere,tag:!ipxe,snponly.efi")
            .arg(format!("--dhcp-boot=tag:!elsewhere,tag:ipxe,{SCRIPT}"))
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
