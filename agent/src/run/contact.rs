//! The run's line to the controller: callbacks in the run's own words, and events that never hold it up.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use farrier_shared::contract::InspectionReport;
use farrier_shared::contract::callback::{Event, EventName};
use farrier_shared::contract::cmdline::BootParams;
use reqwest::dns::Resolve;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::deadline::Standstill;
use super::redaction::Redaction;
use crate::callback::{CallbackError, Client, Policy, UserData};
use crate::deploy::{Progress, Sampler, Snapshot};

/// Events that may wait to be sent; more are dropped, since the next tells more.
const QUEUE: usize = 32;
/// How long the last events may take at the end.
const FLUSH_WAIT: Duration = Duration::from_secs(5);
/// How long the log may take at the end of a failed run.
const LOG_WAIT: Duration = Duration::from_secs(20);
/// How often an installation is looked at for a new step.
const LOOK: Duration = Duration::from_millis(500);
/// Longest time between two events of an installation, less one look: five seconds are promised.
const PERIOD: Duration = Duration::from_secs(5).saturating_sub(LOOK);
/// How long failure is reported before the machine ends all the same.
const FAIL_WAIT: Duration = Duration::from_secs(5 * 60);

/// The line to the controller; silent until it is [opened](Self::open).
#[derive(Clone, Debug, Default)]
pub struct Contact {
    line: Arc<OnceLock<Line>>,
    installed: Arc<AtomicBool>,
    secrets: Arc<Mutex<Redaction>>,
}

#[derive(Debug)]
struct Line {
    client: Arc<Client>,
    run: Option<String>,
    events: tokio::sync::Mutex<Option<Sender>>,
    queue: mpsc::Sender<Event>,
}

#[derive(Debug)]
struct Sender {
    task: JoinHandle<()>,
    close: tokio::sync::oneshot::Sender<()>,
}

impl Contact {
    /// Opens the line. A second call changes nothing.
    ///
    /// # Errors
    /// When no client can be made of the command line's CA.
    pub fn open(
        &self,
        params: &BootParams,
        resolver: Arc<dyn Resolve>,
        policy: Policy,
    ) -> Result<(), CallbackError> {
        self.secrets().add_token(&params.token);
        let client = Arc::new(Client::new(params, resolver, policy)?);
        let (queue, waiting) = mpsc::channel(QUEUE);
        let (close, closed) = tokio::sync::oneshot::channel();
        let task = tokio::spawn(send_events(Arc::clone(&client), waiting, closed));
        let run = params.extra.get("run").filter(|r| !r.is_empty()).cloned();
        let line = Line { client, run, events: tokio::sync::Mutex::new(Some(Sender { task, close })), queue };
        if let Err(second) = self.line.set(line) {
            drop(second);
        }
        Ok(())
    }

    fn secrets(&self) -> MutexGuard<'_, Redaction> {
        self.secrets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn client(&self) -> Result<&Client, CallbackError> {
        let closed = || CallbackError::Setup { cause: "the network is not up".to_owned() };
        self.line.get().map(|line| line.client.as_ref()).ok_or_else(closed)
    }

    /// Sends the report.
    ///
    /// # Errors
    /// When it does not get through.
    pub async fn report(&self, report: &InspectionReport) -> Result<(), CallbackError> {
        self.client()?.report(report).await
    }

    /// Waits for the user-data.
    ///
    /// # Errors
    /// When there is none in time, or the controller refuses.
    pub async fn bootstrap(&self) -> Result<UserData, CallbackError> {
        let user_data = self.client()?.bootstrap().await?;
        self.secrets().add_user_data(&user_data);
        Ok(user_data)
    }

    /// Reports success, which is insisted on for an hour.
    ///
    /// # Errors
    /// When it does not get through.
    pub async fn provisioned(&self) -> Result<(), CallbackError> {
        self.client()?.provisioned().await
    }

    /// From now on the disk holds the whole system, and whether the controller knows is not for us to say: the answer to
    /// a report may have been lost. Failure is not told any more.
    pub fn installed(&self) {
        self.installed.store(true, Ordering::SeqCst);
    }

    /// Whether the disk holds the whole system.
    pub fn is_installed(&self) -> bool {
        self.installed.load(Ordering::SeqCst)
    }

    /// Tells of something, without waiting for an answer; also in the log.
    pub fn event(&self, event: EventName, message: &str) {
        tracing::info!(?event, "{message}");
        self.enqueue(event, message, None);
    }

    fn enqueue(&self, event: EventName, message: &str, snapshot: Option<&Snapshot>) {
        let Some(line) = self.line.get() else { return };
        let event = Event {
            event,
            message: message.to_owned(),
            run: line.run.clone(),
            step: snapshot.map(|s| s.step.word().to_owned()),
            bytes: snapshot.map(|s| s.bytes),
            total: snapshot.and_then(|s| s.total),
            bytes_per_second: snapshot.and_then(|s| s.bytes_per_second),
        };
        // A full queue means a slow controller; what is lost is one observation of many.
        let _ = line.queue.try_send(event);
    }

    /// Awaits an installation and tells of every new step, and of progress at least every five seconds.
    ///
    /// # Errors
    /// When it stands still for so long that it hangs; how long. The future is dropped then.
    pub async fn while_installing<T>(
        &self,
        install: impl Future<Output = T>,
        progress: &Progress,
    ) -> Result<T, Duration> {
        let mut looks = tokio::time::interval(LOOK);
        looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
        let (mut sampler, mut standstill) = (Sampler::new(), Standstill::default());
        let mut last: Option<(Instant, Snapshot)> = None;
        tokio::pin!(install);
        loop {
            tokio::select! {
                result = &mut install => return Ok(result),
                _ = looks.tick() => {},
            }
            let now = Instant::now();
            if let Some(still) = standstill.look(progress, now) {
                return Err(still);
            }
            let step = progress.snapshot().step;
            if last.as_ref().is_some_and(|(at, old)| old.step == step && now.duration_since(*at) < PERIOD) {
                continue;
            }
            let snapshot = sampler.sample(progress, now);
            let text = describe(&snapshot);
            tracing::info!(step = snapshot.step.word(), "{text}");
            self.enqueue(EventName::Installing, &text, Some(&snapshot));
            last = Some((now, snapshot));
        }
    }

    /// Reports failure, sends the log, and closes the line. Bounded; what does not get through is logged.
    pub async fn fail(&self, reason: &str, log: &[u8]) {
        let Ok(client) = self.client() else {
            tracing::warn!("the network was not up: the controller cannot be told");
            return;
        };
        match timeout(FAIL_WAIT, client.provision_failed(reason)).await {
            Ok(Ok(true)) => tracing::info!("the controller knows of the failure"),
            Ok(Ok(false)) => tracing::warn!("the controller does not take reports of failure"),
            Ok(Err(error)) => tracing::error!(%error, "the controller could not be told of the failure"),
            Err(_elapsed) => {
                tracing::error!("the controller could not be told of the failure in {FAIL_WAIT:?}");
            }
        }
        let log = self.secrets().clean(log);
        if let Ok(Err(error)) = timeout(LOG_WAIT, client.logs(&log)).await {
            tracing::debug!(%error, "log not sent");
        }
        self.close().await;
    }

    /// Gives the last events a moment to get through.
    pub async fn close(&self) {
        let Some(line) = self.line.get() else { return };
        if let Some(Sender { mut task, close }) = line.events.lock().await.take() {
            // The task may have ended by itself.
            let _ = close.send(());
            if timeout(FLUSH_WAIT, &mut task).await.is_err() {
                task.abort();
            }
        }
    }
}

/// Sends events one after the other until the line closes or the controller says that it takes none.
async fn send_events(
    client: Arc<Client>,
    mut waiting: mpsc::Receiver<Event>,
    mut closed: tokio::sync::oneshot::Receiver<()>,
) {
    let mut closing = false;
    loop {
        let event = if closing {
            waiting.try_recv().ok()
        } else {
            tokio::select! {
                event = waiting.recv() => event,
                _ = &mut closed => {
                    closing = true;
                    continue;
                }
            }
        };
        let Some(event) = event else { return };
        match client.event(&event).await {
            Ok(true) => {}
            Ok(false) => {
                tracing::debug!("the controller takes no events");
                return;
            }
            Err(error) => tracing::debug!(%error, "event not sent"),
        }
    }
}

/// Progress in words.
fn describe(s: &Snapshot) -> String {
    let mib = |bytes: u64| bytes >> 20;
    let step = s.step.word();
    let mut text = match s.total {
        Some(total) => format!("{step}: {} of {} MiB", mib(s.bytes), mib(total)),
        None if s.bytes > 0 => format!("{step}: {} MiB", mib(s.bytes)),
        None => step.to_owned(),
    };
    if let Some(rate) = s.bytes_per_second.filter(|rate| *rate > 0) {
        text.push_str(&format!(", {} MiB/s", mib(rate)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deploy::Step;

    #[test]
    fn progress_reads_like_a_sentence() {
        let mut s =
            Snapshot { step: Step::Writing, bytes: 5 << 20, total: Some(10 << 20), bytes_per_second: None };
        assert_eq!(describe(&s), "write: 5 of 10 MiB");
        s.bytes_per_second = Some(2 << 20);
        s.total = None;
        assert_eq!(describe(&s), "write: 5 MiB, 2 MiB/s");
        let idle = Snapshot { step: Step::Flushing, bytes: 0, total: None, bytes_per_second: None };
        assert_eq!(describe(&idle), "flush");
    }

    #[tokio::test]
    async fn before_the_network_is_up_nothing_is_sent_and_nothing_hangs() {
        let contact = Contact::default();
        contact.event(EventName::Preparing, "x");
        contact.fail("network: no offer", b"log").await;
        contact.close().await;
        assert!(contact.provisioned().await.is_err());
    }
}
