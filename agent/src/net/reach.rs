//! Whether the network leads to the controller.

use std::error::Error;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use farrier_shared::contract::WebUrl;
use futures_util::future::select_ok;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};

use super::NetworkConfig;
use super::dns::fixed_resolver;

/// One attempt to connect.
const CONNECT_WAIT: Duration = Duration::from_secs(5);
/// Between attempts.
const PAUSE: Duration = Duration::from_millis(500);

/// Tries to connect to the controller for as long as `wait`; each refusal is tried again, since a port may still be
/// learning and a controller restarting.
///
/// # Errors
/// Why the last attempt failed.
pub(super) async fn reach(config: &NetworkConfig, api: &WebUrl, wait: Duration) -> Result<(), String> {
    let deadline = Instant::now() + wait;
    let mut last = String::from("no attempt finished");
    while Instant::now() < deadline {
        match timeout(CONNECT_WAIT.min(wait), connect(config, api)).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) => last = error.to_string(),
            Err(_elapsed) => "timed out".clone_into(&mut last),
        }
        sleep(PAUSE).await;
    }
    Err(last)
}

async fn connect(config: &NetworkConfig, api: &WebUrl) -> Result<(), Box<dyn Error + Send + Sync>> {
    let url = api.to_url();
    let port = url.port_or_known_default().unwrap_or(443);
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let addresses: Vec<SocketAddr> = match host.parse::<IpAddr>() {
        Ok(ip) => vec![SocketAddr::new(ip, port)],
        Err(_) => fixed_resolver(config)
            .resolve(host.parse().map_err(|_| "not a host name")?)
            .await?
            .map(|a| SocketAddr::new(a.ip(), port))
            .collect(),
    };
    // All at once: an address of a family that leads nowhere must not use up the time of the other.
    let attempts: Vec<_> = addresses.into_iter().map(|a| Box::pin(TcpStream::connect(a))).collect();
    if attempts.is_empty() {
        return Err("the name has no address".into());
    }
    select_ok(attempts).await?;
    Ok(())
}
