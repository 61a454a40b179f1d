//! Whether the network leads to the controller.

use std::error::Error;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use farrier_shared::contract::WebUrl;
use futures_util::future::select_ok;
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::{Instant, sleep, timeout};

use super::NetworkConfig;
use super::dns::fixed_resolver;

/// One attempt to connect.
const CONNECT_WAIT: Duration = Duration::from_secs(5);
/// Most addresses of one name.
const MAX_ADDRESSES: usize = 16;
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
    let addresses = addresses.into_iter().take(MAX_ADDRESSES);
    let attempts: Vec<_> = addresses.map(|a| Box::pin(by(&config.interface, a))).collect();
    if attempts.is_empty() {
        return Err("the name has no address".into());
    }
    select_ok(attempts).await?;
    Ok(())
}

/// Connects by this interface. With IPv6 another on trial may have the prefix the address is in; with IPv4 there is but
/// one that is configured, and a socket bound to it would find the controller on the link without any route there.
async fn by(interface: &str, address: SocketAddr) -> io::Result<TcpStream> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    if address.is_ipv6() {
        socket.bind_device(Some(interface.as_bytes()))?;
    }
    socket.connect(address).await
}
