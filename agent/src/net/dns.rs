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

use super::lookup::{self, Nothing, Question};
use super::on_interface::OnInterface;
use super::{Network, NetworkConfig};

/// Most servers asked of each family; all at the same time.
const MAX_SERVERS: usize = 3;
/// How long one server may take for one try.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Tries after the first, of one server.
const RETRIES: usize = 2;
/// How long a lookup may take: less than a connection may, or its reason would never be told.
const LOOKUP_WAIT: Duration = Duration::from_secs(8);
/// How long an answer is good for, at most: a controller may move while a run lasts, or its name be entered only now.
const MAX_TTL: Duration = Duration::from_secs(60);
const MAX_NEGATIVE_TTL: Duration = Duration::from_secs(1);

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
    /// No server said anything.
    #[error("cannot resolve {name}: no answer from {servers}")]
    Silence {
        /// The name.
        name: String,
        /// The servers asked.
        servers: String,
    },
    /// The servers refuse, or there is no such name.
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
    /// Families to ask for: those that are configured, since an address of the other would lead nowhere.
    families: Vec<LookupIpStrategy>,
}

impl Settings {
    fn of(config: &NetworkConfig) -> Self {
        let (v4, v6): (Vec<IpAddr>, Vec<IpAddr>) = config.dns().into_iter().partition(IpAddr::is_ipv4);
        let servers = v4.into_iter().take(MAX_SERVERS).chain(v6.into_iter().take(MAX_SERVERS)).collect();
        let mut families = Vec::new();
        if config.v4.is_some() || config.v6.is_none() {
            families.push(LookupIpStrategy::Ipv4Only);
        }
        if config.v6.is_some() {
            families.push(LookupIpStrategy::Ipv6Only);
        }
        Self { interface: config.interface.clone(), servers, search: config.search(), families }
    }
}

/// Asks one server for addresses of one family.
struct Asker {
    is_v6: bool,
    resolver: Resolver<OnInterface>,
}

struct LeaseResolver {
    network: watch::Receiver<NetworkConfig>,
    /// The askers last built, and what from.
    built: Mutex<Option<(Settings, Arc<Vec<Asker>>)>>,
}

impl LeaseResolver {
    /// Who is asked as the network says now, and its servers in words; [`None`] when it names none.
    fn current(&self) -> Option<(Arc<Vec<Asker>>, String)> {
        let settings = Settings::of(&self.network.borrow());
        if settings.servers.is_empty() {
            return None;
        }
        let text = settings.servers.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let mut built = self.built.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, askers)) = built.as_ref().filter(|(from, _)| *from == settings) {
            return Some((Arc::clone(askers), text));
        }
        let askers = Arc::new(build(&settings));
        *built = Some((settings, Arc::clone(&askers)));
        Some((askers, text))
    }
}

/// One resolver for each server and family: the library takes the first answer of any server for that of all, a
/// refusal too, and waits for both families.
fn build(settings: &Settings) -> Vec<Asker> {
    let each =
        |server: &IpAddr| settings.families.iter().map(|family| (*server, *family)).collect::<Vec<_>>();
    settings
        .servers
        .iter()
        .flat_map(each)
        .filter_map(|(server, family)| asker(settings, server, family))
        .collect()
}

fn asker(settings: &Settings, server: IpAddr, family: LookupIpStrategy) -> Option<Asker> {
    let config = ResolverConfig::from_parts(
        None,
        settings.search.iter().filter_map(|d| Name::from_str(d).ok()).collect(),
        vec![NameServerConfig::udp_and_tcp(server)],
    );
    let mut options = ResolverOpts::default();
    options.timeout = TIMEOUT;
    options.attempts = RETRIES;
    options.ip_strategy = family;
    options.positive_max_ttl = Some(MAX_TTL);
    options.negative_max_ttl = Some(MAX_NEGATIVE_TTL);
    // The initramfs has no hosts file.
    options.use_hosts_file = hickory_resolver::config::ResolveHosts::Never;
    let builder = Resolver::builder_with_config(config, OnInterface::new(&settings.interface));
    match builder.with_options(options).build() {
        Ok(resolver) => Some(Asker { is_v6: matches!(family, LookupIpStrategy::Ipv6Only), resolver }),
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
            let Some((askers, servers)) = current else { return Err(DnsError::NoServers { name }.into()) };
            let question = |asker: &Asker| {
                let (is_v6, resolver, name) = (asker.is_v6, asker.resolver.clone(), name.clone());
                let answer = async move {
                    resolver.lookup_ip(name.as_str()).await.map(|found| found.iter().collect())
                };
                Question { is_v6, answer }
            };
            match lookup::ask(askers.iter().map(question).collect(), LOOKUP_WAIT).await {
                Ok(found) => Ok(Box::new(found.into_iter().map(|ip| SocketAddr::new(ip, 0))) as Addrs),
                Err(Nothing::Silence) => Err(DnsError::Silence { name, servers }.into()),
                Err(Nothing::Said(source)) => {
                    Err(DnsError::Lookup { name, servers, source: source.into() }.into())
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use farrier_shared::contract::MacAddress;

    use super::*;
    use crate::net::{AddressPlan, Ipv6Plan};

    #[test]
    fn servers_of_either_family_are_asked_for_the_families_there_are() {
        let v4 = AddressPlan {
            dns: (1..=5).map(|n| [10, 0, 0, n].into()).collect(),
            search: vec!["lab".into()],
            ..AddressPlan::from_static(&"10.0.0.5:::24".parse().unwrap())
        };
        let v6 = Ipv6Plan { dns: vec!["fe80::53".parse().unwrap()], ..Ipv6Plan::default() };
        let config = |v4: Option<&AddressPlan>, v6: Option<&Ipv6Plan>| NetworkConfig {
            interface: "eth0".into(),
            index: 2,
            mac: MacAddress::from_bytes([2, 0, 0, 0, 0, 1]),
            v4: v4.cloned(),
            lease: None,
            v6: v6.cloned(),
            took: Duration::ZERO,
        };
        use LookupIpStrategy::{Ipv4Only, Ipv6Only};
        for (config, servers, families) in [
            (config(Some(&v4), None), 3, &[Ipv4Only][..]),
            (config(Some(&v4), Some(&v6)), 4, &[Ipv4Only, Ipv6Only]),
            (config(None, Some(&v6)), 1, &[Ipv6Only]),
        ] {
            let settings = Settings::of(&config);
            assert_eq!((settings.servers.len(), settings.families.as_slice()), (servers, families));
            assert_eq!(build(&settings).len(), servers * families.len());
        }
    }
}
