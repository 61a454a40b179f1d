//! The clock: a machine whose own is wrong must still judge certificates rightly.
//!
//! Time comes from NTP servers, else from the pinned server itself ([`server`]). Whatever is learnt must lie within
//! the life of the pinned CA ([`bounds`]), and every call that carries a secret is verified in full afterwards.

pub mod bounds;
mod clock;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
pub mod server;
pub mod sntp;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use farrier_shared::contract::cmdline::BootParams;
use farrier_shared::contract::options::{NtpServer, NtpServers};
use reqwest::dns::Resolve;

use bounds::Bounds;

pub use clock::{Clock, SystemClock};

/// Seconds since 1970, UTC.
pub type Unix = u64;

/// How long NTP servers may take, all of them.
const NTP_WAIT: Duration = Duration::from_secs(12);
/// Most addresses asked of one name.
const MAX_ADDRESSES: usize = 2;
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
/// line count before them. Says where the time came from, [`None`] when the clock was left as it was.
///
/// Nothing here fails a run: a clock that stays wrong fails the first call, whose error says so.
pub async fn settle(
    clock: &dyn Clock,
    params: &BootParams,
    resolver: Arc<dyn Resolve>,
    named: &[IpAddr],
) -> Option<Source> {
    let bounds = match Bounds::of(&params.ca_pem) {
        Ok(bounds) => bounds,
        Err(cause) => {
            tracing::debug!(cause, "the life of the CA is not known; the clock stays as it is");
            return None;
        }
    };
    let given: Option<NtpServers> = params.extra.get("ntp").and_then(|text| text.parse().ok());
    let asked = tokio::time::timeout(NTP_WAIT, by_ntp(given.as_ref(), named, &resolver, &bounds)).await;
    if let Ok(Some((server, time))) = asked {
        set(clock, time, &format!("NTP server {server}"));
        return Some(Source::Ntp(server));
    }
    match server::ask(params, resolver, &bounds).await {
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

/// The first time server that says something believable, and what it says.
async fn by_ntp(
    given: Option<&NtpServers>,
    named: &[IpAddr],
    resolver: &Arc<dyn Resolve>,
    bounds: &Bounds,
) -> Option<(IpAddr, Unix)> {
    let mut servers = Vec::new();
    for server in given.into_iter().flat_map(NtpServers::iter) {
        match server {
            NtpServer::Address(ip) => servers.push(*ip),
            NtpServer::Name(name) => {
                let Ok(name) = name.parse() else { continue };
                match resolver.resolve(name).await {
                    Ok(found) => servers.extend(found.take(MAX_ADDRESSES).map(|a| a.ip())),
                    Err(error) => tracing::warn!(%server, %error, "time server not found"),
                }
            }
        }
    }
    servers.extend(named);
    for ip in servers {
        match sntp::ask(SocketAddr::new(ip, sntp::PORT)).await {
            Ok(time) if bounds.contains(time) => return Some((ip, time)),
            Ok(time) => {
                tracing::warn!(server = %ip, time, "time server not believed: beyond the life of the CA");
            }
            Err(cause) => tracing::info!(server = %ip, cause, "time server left out"),
        }
    }
    None
}
