//! Keeping the serving certificate fresh, and following its files when somebody replaces them.

use std::sync::Arc;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::clock::SharedClock;
use crate::tls::ServingIdentity;
use crate::tls::serving::Upkeep;

/// Between two looks at the files.
const EVERY: Duration = Duration::from_secs(10);

/// Between two reminders that a certificate ends.
const REMIND: Duration = Duration::from_secs(24 * 60 * 60);

/// Looks at the certificate files every few seconds and on SIGHUP, until `stop`.
pub(super) async fn keep(identity: Arc<ServingIdentity>, clock: SharedClock, stop: CancellationToken) {
    let mut hangup = signal(SignalKind::hangup()).ok();
    let mut complained = String::new();
    let mut reminded = None;
    loop {
        if reminded.is_none_or(|at| clock.monotonic().saturating_sub(at) >= REMIND) {
            reminded = Some(clock.monotonic());
            let (looked_at, now) = (Arc::clone(&identity), clock.now());
            // Whatever else is wrong with the files is told below.
            if let Ok(Ok(Some((path, end)))) =
                tokio::task::spawn_blocking(move || looked_at.ends_soon(now)).await
            {
                tracing::warn!(path = %path.display(), %end, "a certificate ends soon or has ended; replace it: no agent trusts it then");
            }
        }
        let hung_up = async {
            match &mut hangup {
                Some(signal) => {
                    signal.recv().await;
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(EVERY) => {}
            () = hung_up => tracing::info!("SIGHUP: looking at the certificate files"),
        }
        let (looked_at, now) = (Arc::clone(&identity), clock.now());
        let result = tokio::task::spawn_blocking(move || looked_at.upkeep(now)).await;
        match result {
            Ok(Ok(Upkeep::Unchanged)) => complained.clear(),
            Ok(Ok(change)) => {
                complained.clear();
                tracing::info!(?change, "serving another certificate from now on");
            }
            Ok(Err(error)) => {
                // Said once, not every ten seconds.
                let text = error.to_string();
                if text != complained {
                    tracing::error!(%error, "the certificate files are unusable; serving the old certificate");
                    complained = text;
                }
            }
            Err(error) => tracing::error!(%error, "looking at the certificate files failed"),
        }
    }
}
