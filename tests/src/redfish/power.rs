//! What happens behind the power button: one order or event at a time.

use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep_until};

use super::machine::{Boot, Cause, Engine, PowerState};
use crate::qemu::{BootFrom, Ended, Running};

/// How long a guest may take to switch itself off before the plug is pulled.
const GRACE: Duration = Duration::from_secs(30);

/// Tells whoever gave an order what came of it.
pub(super) type Reply = oneshot::Sender<Result<()>>;

/// What can be seen of the server from outside.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) power: PowerState,
    pub(super) network_once: bool,
    pub(super) boots: Vec<Boot>,
    pub(super) held: bool,
    pub(super) last_end: Option<Ended>,
}

#[derive(Debug)]
pub(super) enum Order {
    On,
    ForceOff,
    GracefulShutdown,
    ForceRestart,
    NetworkOnce(bool),
    Plug { nic: usize, plugged: bool },
    HoldResets(bool),
    Continue,
}

/// Owns the process; one order or event at a time.
pub(super) struct Power {
    engine: Engine,
    publish: watch::Sender<Seen>,
    running: Option<Running>,
    pull_at: Option<Instant>,
    hold: bool,
}

impl Power {
    pub(super) fn new(engine: Engine, publish: watch::Sender<Seen>) -> Self {
        Self { engine, publish, running: None, pull_at: None, hold: false }
    }

    pub(super) async fn run(mut self, mut inbox: mpsc::Receiver<(Order, Reply)>) {
        loop {
            tokio::select! {
                order = inbox.recv() => {
                    let Some((order, reply)) = order else { return };
                    reply.send(self.obey(order).await).ok();
                }
                ended = ended(&mut self.running) => self.after(ended).await,
                () = due(self.pull_at) => self.switch_off().await,
            }
        }
    }

    async fn obey(&mut self, order: Order) -> Result<()> {
        match order {
            Order::On if self.publish.borrow().power == PowerState::On => Ok(()),
            Order::On => self.boot(Cause::PowerOn).await,
            Order::ForceOff => {
                self.switch_off().await;
                Ok(())
            }
            Order::ForceRestart => {
                self.switch_off().await;
                self.boot(Cause::ForceRestart).await
            }
            Order::GracefulShutdown => match &mut self.running {
                Some(running) => {
                    running.press_power_button().await?;
                    self.pull_at = Some(Instant::now() + GRACE);
                    Ok(())
                }
                None => {
                    self.switch_off().await;
                    Ok(())
                }
            },
            Order::NetworkOnce(once) => {
                self.publish.send_modify(|seen| seen.network_once = once);
                Ok(())
            }
            Order::Plug { nic, plugged } => {
                self.running.as_mut().context("the server is not running")?.plug(nic, plugged).await
            }
            Order::HoldResets(hold) => {
                self.hold = hold;
                Ok(())
            }
            Order::Continue if self.publish.borrow().held => self.boot(Cause::GuestReset).await,
            Order::Continue => Ok(()),
        }
    }

    /// The override counts for one boot and is gone with it, as the Redfish schema says of `Once`.
    async fn boot(&mut self, cause: Cause) -> Result<()> {
        let from = if self.publish.borrow().network_once { BootFrom::Network } else { BootFrom::Disk };
        if let Engine::Qemu { hardware, files } = &self.engine {
            self.running = Some(Running::start(hardware, files, from).await?);
        }
        self.publish.send_modify(|seen| {
            seen.power = PowerState::On;
            seen.network_once = false;
            seen.held = false;
            seen.boots.push(Boot { cause, from });
        });
        Ok(())
    }

    async fn switch_off(&mut self) {
        self.pull_at = None;
        if let Some(mut running) = self.running.take() {
            running.kill().await;
        }
        self.publish.send_modify(|seen| {
            seen.power = PowerState::Off;
            seen.held = false;
        });
    }

    async fn after(&mut self, ended: Ended) {
        self.running = None;
        self.publish.send_modify(|seen| seen.last_end = Some(ended.clone()));
        if ended != Ended::Reset {
            return self.switch_off().await;
        }
        if self.hold {
            self.publish.send_modify(|seen| seen.held = true);
        } else if self.boot(Cause::GuestReset).await.is_err() {
            self.switch_off().await;
        }
    }
}

async fn ended(running: &mut Option<Running>) -> Ended {
    match running {
        Some(running) => running.ended().await,
        None => std::future::pending().await,
    }
}

async fn due(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}
