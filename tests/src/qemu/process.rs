//! A running virtual server: started with a boot order, ended by its guest or by a switch.

use std::fs::{self, OpenOptions};
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context as _, Result};
use serde_json::json;
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;

use super::args::{arguments, netdev};
use super::qmp::{self, Control};
use super::{BootFrom, Files, Hardware};

/// The firmware's variables as it comes from the factory.
const FACTORY_VARIABLES: &str = "/usr/share/OVMF/OVMF_VARS_4M.fd";

/// Emulated timers tick late on a busy machine, and kernels that wait for a tick in vain panic; where priority
/// may not be raised, `nice` says so and goes on.
const PRIORITY: &str = "-10";

/// A QEMU process; killed when dropped.
#[derive(Debug)]
pub struct Running {
    child: Child,
    control: Control,
    reason: JoinHandle<Result<Option<String>>>,
}

/// Why a virtual server is no longer running.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The guest reset the machine.
    Reset,
    /// The guest switched the machine off.
    PoweredOff,
    /// Anything else: killed, or QEMU itself failed.
    Stopped(String),
}

impl Running {
    /// Switches `hardware` on.
    ///
    /// # Errors
    /// When QEMU does not start; its complaint is in the error.
    pub async fn start(hardware: &Hardware, files: &Files, first: BootFrom) -> Result<Self> {
        prepare(files)?;
        let log = OpenOptions::new().create(true).append(true).open(&files.qemu_log)?;
        let mut child = Command::new("nice")
            .args(["-n", PRIORITY, "qemu-system-x86_64"])
            .args(arguments(hardware, files, first))
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .context("start qemu-system-x86_64; `make deps` installs it")?;
        match qmp::connect(&files.control).await {
            Ok((control, events)) => {
                Ok(Self { child, control, reason: tokio::spawn(events.shutdown_reason()) })
            }
            Err(error) => {
                child.kill().await.ok();
                let said = fs::read_to_string(&files.qemu_log).unwrap_or_default();
                Err(error.context(format!("QEMU said: {}", said.trim())))
            }
        }
    }

    /// Waits for the end, whatever brings it.
    pub async fn ended(&mut self) -> Ended {
        let status = self.child.wait().await;
        let reason = match (&mut self.reason).await {
            Ok(Ok(Some(reason))) => reason,
            Ok(Ok(None)) => return Ended::Stopped(format!("{status:?}")),
            Ok(Err(error)) => return Ended::Stopped(format!("{error:#}")),
            Err(error) => return Ended::Stopped(error.to_string()),
        };
        match reason.as_str() {
            "guest-reset" => Ended::Reset,
            "guest-shutdown" => Ended::PoweredOff,
            _ => Ended::Stopped(reason),
        }
    }

    /// Presses the power button; what follows is up to the guest.
    ///
    /// # Errors
    /// When QEMU has already gone.
    pub async fn press_power_button(&mut self) -> Result<()> {
        self.control.send("system_powerdown", json!({})).await
    }

    /// Plugs the cable of a network card in or out, until the next boot, which finds all of them in.
    ///
    /// # Errors
    /// When QEMU has already gone.
    pub async fn plug(&mut self, nic: usize, plugged: bool) -> Result<()> {
        self.control.send("set_link", json!({ "name": netdev(nic), "up": plugged })).await
    }

    /// Pulls the plug.
    pub async fn kill(&mut self) {
        self.child.kill().await.ok();
    }
}

/// Makes what a new machine has besides its disks: factory settings.
fn prepare(files: &Files) -> Result<()> {
    if !files.variables.exists() {
        fs::copy(Path::new(FACTORY_VARIABLES), &files.variables)
            .context("copy the firmware's variables; `make deps` installs ovmf")?;
    }
    if files.control.exists() {
        fs::remove_file(&files.control).context("remove an old control socket")?;
    }
    Ok(())
}
