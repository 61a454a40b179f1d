//! The clock: a machine whose own is wrong must still judge certificates rightly.
//!
//! Time comes from NTP servers, else from the pinned server itself ([`server`]). Whatever is learnt must lie within
//! the life of the pinned CA ([`bounds`]), and every call that carries a secret is verified in full afterwards.

pub mod bounds;
mod built;
mod clock;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
pub mod server;
pub mod sntp;
mod sources;
#[cfg(test)]
mod tests;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use farrier_shared::contract::cmdline::BootParams;
use farrier_shared::contract::options::{NtpServer, NtpServers};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use reqwest::dns::Resolve;
use tokio::time::timeout;

use bounds::Bounds;

pub use built::BUILT;
pub use clock::{Clock, SystemClock};
use sources::{OverNetwork, Sources};

/// Seconds since 1970, UTC.
pub type Unix = u64;

/// How long NTP servers may take, all of them.
const NTP_WAIT: Duration = Duration::from_secs(12);
/// Most servers asked, of the command line and of the network.
const MAX_SERVERS: usize = 8;
/// A clock that is off by less is right: setting it would gain nothing.
const RIGHT: u64 = 2;

/// Where the time was learnt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A time server.
    Ntp(IpAddr),
    /// The controller.
    Controller,
}

/// Sees to it that the clock is right enough. `named` are time servers the network told of; those of the command
/// line count before them. Says where the time was learnt, [`None`] when it was not.
///
/// Nothing here fails a run: a clock that stays wrong fails the first call, whose error says so.
pub async fn settle(
    clock: &dyn Clock,
    params: &BootParams,
    resolver: Arc<dyn Resolve>,
    named: &[IpAddr],
) -> Option<Source> {
    let bounds = match Bounds::of(&params.ca_pem, BUILT) {
        Ok(bounds) => {
            Bounds { ordered: params.extra.get("time").and_then(|text| text.parse().ok()), ..bounds }
        }
        Err(cause) => {
            tracing::debug!(cause, "the life of the CA is not known; the clock stays as it is");
            return None;
        }
    };
    let given: Option<NtpServers> = params.extra.get("ntp").and_then(|text| text.parse().ok());
    let given: Vec<NtpServer> = given.iter().flat_map(NtpServers::iter).cloned().collect();
    settle_by(clock, &OverNetwork { params, resolver }, &bounds, &given, named, NTP_WAIT).await
}

/// The same from any sources; time servers are asked for as long as `wait`.
async fn settle_by(
    clock: &dyn Clock,
    sources: &impl Sources,
    bounds: &Bounds,
    given: &[NtpServer],
    named: &[IpAddr],
    wait: Duration,
) -> Option<Source> {
    if let Ok(Some((server, time))) = timeout(wait, by_ntp(sources, bounds, given, named)).await {
        set(clock, time, &format!("NTP server {server}"));
        return Some(Source::Ntp(server));
    }
    match sources.controller(bounds).await {
        Ok(heard) => {
            let time = bounds.correct(clock.now(), heard)?;
            set(clock, time, "the controller");
            Some(Source::Controller)
        }
        Err(cause) => {
            tracing::info!(cause, "the controller's time is not known; the clock stays as it is");
            None
        }
    }
}

fn set(clock: &dyn Clock, time: Unix, source: &str) {
    let before = clock.now();
    if before.abs_diff(time) < RIGHT {
        return;
    }
    match clock.set(time) {
        Ok(()) => tracing::warn!(before, after = time, source, "the clock was wrong and is set"),
        Err(error) => tracing::error!(%error, source, "the clock is wrong and cannot be set"),
    }
}

/// The first time server that says something believable, and what it says: one of the operator's, else of the
/// network's.
async fn by_ntp(
    sources: &impl Sources,
    bounds: &Bounds,
    given: &[NtpServer],
    named: &[IpAddr],
) -> Option<(IpAddr, Unix)> {
    let mut servers = Vec::new();
    for server in given {
        match server {
            NtpServer::Address(ip) => servers.push(*ip),
            NtpServer::Name(name) => match sources.resolve(name).await {
                Ok(found) => servers.extend(found),
                Err(cause) => tracing::warn!(%server, cause, "time server not found"),
            },
        }
    }
    match first(sources, bounds, &servers).await {
        Some(found) => Some(found),
        None => first(sources, bounds, named).await,
    }
}

/// All at once: a dead one must not use up the time of the others.
async fn first(sources: &impl Sources, bounds: &Bounds, servers: &[IpAddr]) -> Option<(IpAddr, Unix)> {
    let ask = |server: &IpAddr| {
        let server = *server;
        async move { (server, sources.ntp(server).await) }
    };
    let mut asked: FuturesUnordered<_> = servers.iter().take(MAX_SERVERS).map(ask).collect();
    while let Some((server, answer)) = asked.next().await {
        match answer {
            Ok(time) if bounds.contains(time) => return Some((server, time)),
            Ok(time) => {
                tracing::warn!(%server, time, "time server not believed: beyond the life of the CA, or before this build");
            }
            Err(cause) => tracing::info!(%server, cause, "time server left out"),
        }
    }
    None
}
