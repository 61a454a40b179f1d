//! All interfaces on trial at the same time: the first that leads to the controller wins.

use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

use super::NetError;
use super::family::News;
use super::netlink::{Netlink, NetlinkError};
use super::reach::reach;
use super::trial::{Trial, Turn};
use super::wanted::Wanted;

/// How long the controller is looked for after the last address came: a switch may still be learning, and a controller
/// restarting.
const REACH_WAIT: Duration = Duration::from_secs(60);
/// How long it is looked for before another interface is tried.
const TRY_WAIT: Duration = Duration::from_secs(5);
/// Between such tries, for news.
const TRY_PAUSE: Duration = Duration::from_secs(1);
/// The same where there is no other interface.
const ALONE_WAIT: Duration = Duration::from_secs(3);
const ALONE_PAUSE: Duration = Duration::from_millis(100);

/// The interfaces, and what is known of all of them.
pub(super) struct Contest {
    netlink: Netlink,
    wanted: Wanted,
    pub(super) trials: Vec<Trial>,
    /// There is nothing to choose: what is configured stays.
    alone: bool,
    pub(super) failures: Vec<String>,
    /// The last refusal of the kernel.
    refused: Option<NetlinkError>,
    /// The last that was tried again.
    last: usize,
    /// When the best there is is taken though it does not lead to the controller.
    give_up: Option<Instant>,
    start: Instant,
}

impl Contest {
    pub(super) fn new(netlink: Netlink, wanted: Wanted, trials: Vec<Trial>, start: Instant) -> Self {
        let alone = trials.len() == 1;
        let failures = Vec::new();
        Self { netlink, wanted, trials, alone, failures, refused: None, last: 0, give_up: None, start }
    }

    /// The number of the winner.
    ///
    /// # Errors
    /// When no interface gets an address, or the kernel takes none of them.
    pub(super) async fn run(&mut self, news: &mut mpsc::Receiver<(usize, News)>) -> Result<usize, NetError> {
        loop {
            let number = match self.next(news).await {
                Some((number, item)) => {
                    if !self.take(number, item).await {
                        if self.trials.iter().all(|t| t.is_complete() && !t.has_address()) {
                            return self.fallback().await;
                        }
                        continue;
                    }
                    number
                }
                None => self.again(),
            };
            if self.leads(number).await {
                return Ok(number);
            }
            let now = self.start.elapsed();
            let waited_out = self.trials.iter().all(|t| t.is_waited_out(now)) && news.is_empty();
            if let Some(error) = self.refused.take().filter(|_| self.alone && waited_out) {
                return Err(error.into());
            }
            if waited_out && self.give_up.is_some_and(|end| Instant::now() >= end) {
                return self.fallback().await;
            }
        }
    }

    /// The next of those with an address, in turn: a port may have opened, or a server come back.
    fn again(&mut self) -> usize {
        let with_address = |(number, trial): (usize, &Trial)| trial.has_address().then_some(number);
        let mut all = self.trials.iter().enumerate().filter_map(with_address);
        let first = all.next().unwrap_or(0);
        self.last = std::iter::once(first).chain(all).find(|n| *n > self.last).unwrap_or(first);
        self.last
    }

    /// The next news; [`None`] when the controller should be tried again without.
    async fn next(&self, news: &mut mpsc::Receiver<(usize, News)>) -> Option<(usize, News)> {
        if self.trials.iter().any(Trial::has_address) {
            let wait = if self.alone { ALONE_PAUSE } else { TRY_PAUSE };
            return timeout(wait, news.recv()).await.ok().flatten();
        }
        match news.recv().await {
            Some(item) => Some(item),
            // The trials hold the senders; none ends by itself.
            None => std::future::pending().await,
        }
    }

    /// Takes news in; whether there is something to try.
    async fn take(&mut self, number: usize, item: News) -> bool {
        let now = self.start.elapsed();
        let Some(trial) = self.trials.get_mut(number) else { return false };
        let name = trial.candidate.link.name.clone();
        match trial.take(item, now) {
            Turn::Changed => {
                self.give_up = Some(Instant::now() + REACH_WAIT);
                true
            }
            Turn::Extended => false,
            Turn::Back => trial.has_address(),
            Turn::Lost(family) => {
                tracing::warn!(interface = name, ?family, "the lease is lost");
                if let Err(error) = trial.apply(&self.netlink).await {
                    tracing::debug!(interface = name, %error, "what is left is not taken");
                }
                false
            }
            Turn::Ended(family, cause) => {
                tracing::info!(interface = name, ?family, cause, "no address");
                self.failures.push(format!("{name}: {cause}"));
                false
            }
        }
    }

    /// Configures an interface and sees whether the controller can be reached by it.
    async fn leads(&mut self, number: usize) -> bool {
        let Some(trial) = self.trials.get_mut(number) else { return false };
        let name = trial.candidate.link.name.clone();
        if let Err(error) = trial.apply(&self.netlink).await {
            // One interface's odd lease says nothing of the others.
            tracing::warn!(interface = name, %error, "not configured");
            let failure = format!("{name}: {error}");
            if !self.failures.contains(&failure) {
                self.failures.push(failure);
            }
            self.refused = Some(error);
            if !self.alone {
                trial.clear(&self.netlink).await;
            }
            return false;
        }
        let config = trial.config(self.start.elapsed());
        self.refused = None;
        let wait = if self.alone { ALONE_WAIT } else { TRY_WAIT };
        match reach(&config, &self.wanted.api, wait).await {
            Ok(()) => true,
            Err(cause) => {
                let controller = self.wanted.api.authority();
                tracing::warn!(controller, interface = name, cause, "the controller cannot be reached yet");
                if !self.alone {
                    trial.clear(&self.netlink).await;
                }
                false
            }
        }
    }

    /// None led to the controller: the one with a gateway is the best there is, and the report says the rest.
    async fn fallback(&mut self) -> Result<usize, NetError> {
        let with_address = self.trials.iter().enumerate().filter(|(_, t)| t.has_address());
        let best = with_address
            .min_by_key(|(_, t)| (!t.config(Duration::ZERO).has_gateway(), t.index()))
            .map(|(number, _)| number);
        let Some(best) = best else { return Err(NetError::NoLease(self.failures.join("; "))) };
        if let Some(trial) = self.trials.get_mut(best) {
            trial.apply(&self.netlink).await?;
        }
        Ok(best)
    }
}
