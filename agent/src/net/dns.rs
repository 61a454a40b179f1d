//! Names, by the servers the network gave us and no others.

use std::error::Error;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr as _;
use std::sync::Arc;
use std::time::Duration;

use hickory_resolver::TokioResolver;
use hickory_resolver::config::{NameServerConfig, ResolverConfig, ResolverOpts};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::proto::rr::Name;
use reqwest::dns::{Addrs, Resolve, Resolving};

use super::NetworkConfig;

/// Most servers asked; more only lengthen the wait for a name nobody knows.
const MAX_SERVERS: usize = 3;
/// How long one server may take for one try.
const TIMEOUT: Duration = Duration::from_secs(3);
/// Tries per server.
const ATTEMPTS: usize = 3;

/// Why a name was not resolved.
#[derive(Debug, thiserror::Error)]
pub enum DnsError {
    /// The network named no server.
    #[error(
        "cannot resolve {name}: the network gave no name server; use an address in the URL or set option 6"
    )]
    NoServers {
        /// The name.
        name: String,
    },
    /// The servers did not answer, or there is no such name.
    #[error("cannot resolve {name} by {servers}: {source}")]
    Lookup {
        /// The name.
        name: String,
        /// The servers asked.
        servers: String,
        /// What the resolver said.
        source: Box<dyn Error + Send + Sync>,
    },
}

/// A resolver that asks only the servers of this network.
///
/// Never falls back to public servers: an image network without DNS must fail with a reason, not leak names.
pub fn resolver(network: &NetworkConfig) -> Arc<dyn Resolve> {
    Arc::new(LeaseResolver::new(network))
}

struct LeaseResolver {
    servers: String,
    inner: Option<Arc<TokioResolver>>,
}

impl LeaseResolver {
    fn new(network: &NetworkConfig) -> Self {
        let servers: Vec<IpAddr> =
            network.plan.dns.iter().take(MAX_SERVERS).copied().map(IpAddr::V4).collect();
        let search = network.plan.search.iter().filter_map(|d| Name::from_str(d).ok()).collect();
        let text = servers.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let inner = if servers.is_empty() { None } else { build(&servers, search) };
        Self { servers: text, inner: inner.map(Arc::new) }
    }
}

fn build(servers: &[IpAddr], search: Vec<Name>) -> Option<TokioResolver> {
    let config = ResolverConfig::from_parts(
        None,
        search,
        servers.iter().copied().map(NameServerConfig::udp_and_tcp).collect(),
    );
    let mut options = ResolverOpts::default();
    options.timeout = TIMEOUT;
    options.attempts = ATTEMPTS;
    // The initramfs has no hosts file.
    options.use_hosts_file = hickory_resolver::config::ResolveHosts::Never;
    let builder = TokioResolver::builder_with_config(config, TokioRuntimeProvider::default());
    match builder.with_options(options).build() {
        Ok(resolver) => Some(resolver),
        Err(error) => {
            tracing::warn!(%error, "no resolver could be built; only addresses will work");
            None
        }
    }
}

impl Resolve for LeaseResolver {
    fn resolve(&self, name: reqwest::dns::Name) -> Resolving {
        let name = name.as_str().to_owned();
        let servers = self.servers.clone();
        let inner = self.inner.clone();
        Box::pin(async move {
            // A literal address needs no server.
            if let Ok(ip) = name.trim_matches(['[', ']']).parse::<IpAddr>() {
                return Ok(Box::new(std::iter::once(SocketAddr::new(ip, 0))) as Addrs);
            }
            let Some(inner) = inner else { return Err(DnsError::NoServers { name }.into()) };
            match inner.lookup_ip(name.as_str()).await {
                Ok(found) => {
                    let addresses: Vec<SocketAddr> = found.iter().map(|ip| SocketAddr::new(ip, 0)).collect();
                    Ok(Box::new(addresses.into_iter()) as Addrs)
                }
                Err(source) => Err(DnsError::Lookup { name, servers, source: source.into() }.into()),
            }
        })
    }
}
