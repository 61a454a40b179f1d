//! Where the time can be learnt.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use farrier_shared::contract::cmdline::BootParams;
use reqwest::dns::Resolve;

use super::bounds::{Bounds, Heard};
use super::{Unix, server, sntp};

/// Most addresses asked of one name.
const MAX_ADDRESSES: usize = 2;

/// Whoever can be asked. Errors are in words.
pub(super) trait Sources {
    /// The addresses of a time server.
    async fn resolve(&self, name: &str) -> Result<Vec<IpAddr>, String>;

    /// The time by a time server.
    async fn ntp(&self, server: IpAddr) -> Result<Unix, String>;

    /// The time by the controller.
    async fn controller(&self, bounds: &Bounds) -> Result<Heard, String>;
}

/// Those the network leads to.
pub(super) struct OverNetwork<'a> {
    pub(super) params: &'a BootParams,
    pub(super) resolver: Arc<dyn Resolve>,
}

impl Sources for OverNetwork<'_> {
    async fn resolve(&self, name: &str) -> Result<Vec<IpAddr>, String> {
        let name = name.parse().map_err(|_| "not a host name".to_owned())?;
        let found = self.resolver.resolve(name).await.map_err(|e| e.to_string())?;
        Ok(found.take(MAX_ADDRESSES).map(|address| address.ip()).collect())
    }

    async fn ntp(&self, server: IpAddr) -> Result<Unix, String> {
        sntp::ask(SocketAddr::new(server, sntp::PORT)).await
    }

    async fn controller(&self, bounds: &Bounds) -> Result<Heard, String> {
        server::ask(self.params, Arc::clone(&self.resolver), bounds).await
    }
}
