//! The power side of one server as it is seen and switched from outside.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::timeout;

use super::power::{Order, Power, Reply, Seen};
use crate::qemu::{BootFrom, Files, Hardware};

/// Whether the server draws power.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PowerState {
    /// Running, or between two boots.
    On,
    /// Off.
    Off,
}

/// Why a boot began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The BMC switched it on.
    PowerOn,
    /// The BMC restarted it.
    ForceRestart,
    /// Its guest reset it.
    GuestReset,
}

/// One start of the firmware.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Boot {
    /// Why.
    pub cause: Cause,
    /// What the firmware tried first.
    pub from: BootFrom,
}

/// What stands behind the power button.
#[derive(Clone, Debug)]
pub enum Engine {
    /// A virtual server.
    Qemu {
        /// What it is made of.
        hardware: Hardware,
        /// Its files.
        files: Files,
    },
    /// A server that draws power and does nothing, for tests that play its part themselves.
    Inert(Hardware),
}

impl Engine {
    /// What the server is made of.
    pub fn hardware(&self) -> &Hardware {
        match self {
            Self::Qemu { hardware, .. } | Self::Inert(hardware) => hardware,
        }
    }
}

/// A server: cheap to clone, switched off for good when the last clone goes.
#[derive(Clone, Debug)]
pub struct Machine {
    orders: mpsc::Sender<(Order, Reply)>,
    seen: watch::Receiver<Seen>,
    hardware: Arc<Hardware>,
}

impl Machine {
    /// A server, off.
    pub fn new(engine: Engine) -> Self {
        let (orders, inbox) = mpsc::channel(8);
        let start = Seen {
            power: PowerState::Off,
            network_once: false,
            boots: Vec::new(),
            held: false,
            last_end: None,
        };
        let (publish, seen) = watch::channel(start);
        let hardware = Arc::new(engine.hardware().clone());
        tokio::spawn(Power::new(engine, publish).run(inbox));
        Self { orders, seen, hardware }
    }

    /// What it is made of.
    pub fn hardware(&self) -> &Hardware {
        &self.hardware
    }

    /// Whether it draws power.
    pub fn power(&self) -> PowerState {
        self.seen.borrow().power
    }

    /// Whether the next boot is from the network.
    pub fn network_once(&self) -> bool {
        self.seen.borrow().network_once
    }

    /// Every boot so far.
    pub fn boots(&self) -> Vec<Boot> {
        self.seen.borrow().boots.clone()
    }

    /// Switches it on; nothing when it is on.
    ///
    /// # Errors
    /// When QEMU does not start.
    pub async fn on(&self) -> Result<()> {
        self.order(Order::On).await
    }

    /// Pulls the plug.
    ///
    /// # Errors
    /// When the server is gone.
    pub async fn force_off(&self) -> Result<()> {
        self.order(Order::ForceOff).await
    }

    /// Presses the power button, and pulls the plug half a minute later.
    ///
    /// # Errors
    /// When the server is gone.
    pub async fn graceful_shutdown(&self) -> Result<()> {
        self.order(Order::GracefulShutdown).await
    }

    /// Off and on again.
    ///
    /// # Errors
    /// When QEMU does not start.
    pub async fn force_restart(&self) -> Result<()> {
        self.order(Order::ForceRestart).await
    }

    /// Sets or clears the one boot from the network.
    ///
    /// # Errors
    /// When the server is gone.
    pub async fn set_network_once(&self, once: bool) -> Result<()> {
        self.order(Order::NetworkOnce(once)).await
    }

    /// Plugs the cable of a network card in or out; with the next boot all are in again.
    ///
    /// # Errors
    /// When the server is not running.
    pub async fn plug(&self, nic: usize, plugged: bool) -> Result<()> {
        self.order(Order::Plug { nic, plugged }).await
    }

    /// From now on, stops between a guest's reset and the boot that follows, until [`resume`](Self::resume):
    /// the moment at which a disk holds what was written and nothing has booted from it.
    ///
    /// # Errors
    /// When the server is gone.
    pub async fn hold_resets(&self) -> Result<()> {
        self.order(Order::HoldResets(true)).await
    }

    /// Lets a held server boot, and holds no more.
    ///
    /// # Errors
    /// When QEMU does not start.
    pub async fn resume(&self) -> Result<()> {
        self.order(Order::HoldResets(false)).await?;
        self.order(Order::Continue).await
    }

    /// Waits until the guest has reset the server and it is held.
    ///
    /// # Errors
    /// When that takes longer than `limit`.
    pub async fn held(&self, limit: Duration) -> Result<()> {
        self.wait(limit, "the guest to reset the server", |seen| seen.held).await
    }

    /// Waits until the server is off.
    ///
    /// # Errors
    /// When that takes longer than `limit`.
    pub async fn off(&self, limit: Duration) -> Result<()> {
        self.wait(limit, "the server to be off", |seen| seen.power == PowerState::Off).await
    }

    async fn wait(&self, limit: Duration, what: &str, done: impl Fn(&Seen) -> bool) -> Result<()> {
        let mut seen = self.seen.clone();
        let waited = timeout(limit, seen.wait_for(|now| done(now))).await;
        match waited {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) => anyhow::bail!("the server is gone while waiting for {what}"),
            Err(_) => anyhow::bail!("waited {limit:?} for {what}; it is {:?}", *self.seen.borrow()),
        }
    }

    async fn order(&self, order: Order) -> Result<()> {
        let (reply, answer) = oneshot::channel();
        self.orders.send((order, reply)).await.context("the server is gone")?;
        answer.await.context("the server is gone")?
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::qemu::Firmware;

    fn inert() -> Machine {
        Machine::new(Engine::Inert(Hardware {
            manufacturer: "Acme".to_owned(),
            product: "Anvil".to_owned(),
            serial: "A-1".to_owned(),
            firmware: Firmware::Uefi,
            sockets: 1,
            cores: 1,
            memory_mib: 512,
            disks: Vec::new(),
            nics: Vec::new(),
            boot_nic: 0,
        }))
    }

    #[tokio::test]
    async fn the_network_boot_is_used_up_by_one_boot() {
        let machine = inert();
        machine.set_network_once(true).await.unwrap();
        machine.on().await.unwrap();
        machine.force_restart().await.unwrap();
        let froms: Vec<_> = machine.boots().iter().map(|boot| boot.from).collect();
        assert_eq!(froms, [BootFrom::Network, BootFrom::Disk]);
        assert!(!machine.network_once());
    }

    #[tokio::test]
    async fn switching_on_what_is_on_is_no_second_boot() {
        let machine = inert();
        machine.on().await.unwrap();
        machine.on().await.unwrap();
        assert_eq!(machine.boots().len(), 1);
    }

    #[tokio::test]
    async fn power_follows_the_switch() {
        let machine = inert();
        assert_eq!(machine.power(), PowerState::Off);
        machine.on().await.unwrap();
        assert_eq!(machine.power(), PowerState::On);
        machine.graceful_shutdown().await.unwrap();
        machine.off(Duration::from_secs(1)).await.unwrap();
    }

    #[tokio::test]
    async fn only_a_running_server_has_cables_to_plug() {
        let machine = inert();
        assert!(machine.plug(0, false).await.unwrap_err().to_string().contains("not running"));
    }

    #[tokio::test]
    async fn waiting_for_what_does_not_come_ends_with_a_reason() {
        let machine = inert();
        machine.on().await.unwrap();
        let error = machine.off(Duration::from_millis(10)).await.unwrap_err().to_string();
        assert!(error.contains("the server to be off") && error.contains("On"), "{error}");
    }
}
