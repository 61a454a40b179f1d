//! Names, by the servers the network gave us and no others.

use std::error::Error;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hickory_resolver::Resolver;
use hickory_resolver::config::{LookupIpStrategy, NameServerConfig, ResolverConfig, ResolverOpts};
use hickory_resolver::proto::rr::Name;
use reqwest::dns::{Addrs, Resolve, Resolving};
use tokio::sync::watch;

use super::on_interface::OnInterface;
use super::{Network, NetworkConfig};

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
        "cannot resolve {name}: the network gave no name server; use an address in the URL, or have DHCP or the router name one"
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

/// A resolver that asks only the servers the network names, as it names them at the time.
///
/// Never falls back to public servers: an image network without DNS must fail with a reason, not leak names.
pub fn resolver(network: &Network) -> Arc<dyn Resolve> {
    Arc::new(LeaseResolver { network: network.now.clone(), built: Mutex::default() })
}

/// The same for settings that do not change.
pub(super) fn fixed_resolver(config: &NetworkConfig) -> Arc<dyn Resolve> {
    let (_, network) = watch::channel(config.clone());
    Arc::new(LeaseResolver { network, built: Mutex::default() })
}

/// What a resolver is built from.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Settings {
    interface: String,
    servers: Vec<IpAddr>,
    search: Vec<String>,
    strategy: LookupIpStrategy,
}

impl Settings {
    /// Both families are asked for where both are configured: an address of the other would lead nowhere.
    fn of(config: &NetworkConfig) -> Self {
        let strategy = match (&config.v4, &config.v6) {
            (Some(_), Some(_)) => LookupIpStrategy::Ipv6AndIpv4,
            (None, Some(_)) => LookupIpStrategy::Ipv6Only,
            (_, None) => LookupIpStrategy::Ipv4Only,
        };
        let servers = config.dns().into_iter().take(MAX_SERVERS).collect();
        Self { interface: config.interface.clone(), servers, search: config.search(), strategy }
    }
}

struct LeaseResolver {
    network: watch::Receiver<NetworkConfig>,
    /// The last one built, and what from.
    built: Mutex<Option<(Settings, Arc<Resolver<OnInterface>>)>>,
}

impl LeaseResolver {
    /// The resolver for what the network says now, and its servers in words; [`None`] when it names none.
    fn current(&self) -> Option<(Arc<Resolver<OnInterface>>, String)> {
        let settings = Settings::of(&self.network.borrow());
        if settings.servers.is_empty() {
            return None;
        }
        let text = settings.servers.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let mut built = self.built.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, resolver)) = built.as_ref().filter(|(from, _)| *from == settings) {
            return Some((Arc::clone(resolver), text));
        }
        let resolver = Arc::new(build(&settings)?);
        *built = Some((settings, Arc::clone(&resolver)));
        Some((resolver, text))
    }
}

fn build(settings: &Settings) -> Option<Resolver<OnInterface>> {
    let config = ResolverConfig::from_parts(
        None,
        settings.search.iter().filter_map(|d| Name::from_str(d).ok()).collect(),
        settings.servers.iter().copied().map(NameServerConfig::udp_and_tcp).collect(),
    );
    let mut options = ResolverOpts::default();
    options.timeout = TIMEOUT;
    options.attempts = ATTEMPTS;
    options.ip_strategy = settings.strategy;
    // The initramfs has no hosts file.
    options.use_hosts_file = hickory_resolver::config::ResolveHosts::Never;
    let builder = Resolver::builder_with_config(config, OnInterface::new(&settings.interface));
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
        let current = self.current();
        Box::pin(async move {
            // A literal address needs no server.
            if let Ok(ip) = name.trim_matches(['[', ']']).parse::<IpAddr>() {
                return Ok(Box::new(std::iter::once(SocketAddr::new(ip, 0))) as Addrs);
            }
            let Some((inner, servers)) = current else { return Err(DnsError::NoServers { name }.into()) };
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
