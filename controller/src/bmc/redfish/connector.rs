//! Makes a Redfish client of an access that was authorised.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use farrier_shared::lifecycle::fault::Failure;
use reqwest::Client;
use reqwest::redirect::Policy;
use url::Url;
use zeroize::Zeroizing;

use super::client::RedfishBmc;
use super::dns::AbsoluteNames;
use super::gate::Gates;
use super::given;
use super::known::{Known, Service};
use super::transport::{Pace, Transport};
use crate::bmc::access::authority;
use crate::bmc::{Bmc, BmcError, Call, Connector, HostAccess, Trust};

/// Connects to Redfish services, optionally through one proxy.
#[derive(Debug, Default)]
pub struct RedfishConnector {
    proxy: Option<reqwest::Proxy>,
    gates: Gates,
    known: Arc<Known>,
    pace: Pace,
    /// Making a client reads the system's certificates, so BMCs that are trusted alike share one. Credentials
    /// belong to requests, not to clients.
    clients: Mutex<HashMap<Kind, Client>>,
}

/// Clients kept; more kinds than that come from CAs that were replaced.
const CLIENTS: usize = 64;

/// How long a connection is kept for the next request of the same look. Looks are minutes apart, so one kept
/// longer would only cost memory, here and in the BMC.
const IDLE: Duration = Duration::from_secs(3);

/// What sets clients apart.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Kind {
    /// Without TLS no certificates are needed, and a system without any must not fail for them.
    Plain,
    Tls(Trust),
}

/// Why a text is no proxy. Never repeats it: it may hold a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "--bmc-proxy is not a proxy URL (the value is withheld): expected http://[USER:PASSWORD@]HOST:PORT or https://…, without path, query or fragment"
)]
pub struct ProxyError;

/// A value of `--bmc-proxy`.
pub fn parse_proxy(text: &str) -> Result<reqwest::Proxy, ProxyError> {
    let text = Zeroizing::new(text.to_owned());
    let url = Url::parse(&text).map_err(|_| ProxyError)?;
    let plain = matches!(url.scheme(), "http" | "https")
        && url.host_str().is_some_and(|host| !host.is_empty())
        && matches!(url.path(), "" | "/")
        && url.query().is_none()
        && url.fragment().is_none();
    if plain { reqwest::Proxy::all(url).map_err(|_| ProxyError) } else { Err(ProxyError) }
}

impl RedfishConnector {
    /// A connector; `proxy` is what [`parse_proxy`] made of `--bmc-proxy`.
    pub fn new(proxy: Option<reqwest::Proxy>) -> Self {
        Self { proxy, ..Self::default() }
    }

    #[cfg(test)]
    pub(super) fn with_pace(pace: Pace) -> Self {
        Self { pace, ..Self::default() }
    }

    fn client(&self, access: &HostAccess) -> Result<Client, BmcError> {
        let kind = if access.base.scheme() == "http" { Kind::Plain } else { Kind::Tls(access.trust.clone()) };
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(&kind) {
            return Ok(client.clone());
        }
        if clients.len() >= CLIENTS {
            clients.clear();
        }
        let client = self.build(access, &kind)?;
        clients.insert(kind, client.clone());
        Ok(client)
    }

    fn build(&self, access: &HostAccess, kind: &Kind) -> Result<Client, BmcError> {
        let unusable = || BmcError::Failed {
            authority: authority(&access.base),
            action: "be connected to".to_owned(),
            failure: Failure::Connection,
            reason: "no TLS client can be made; check the CA bundle and the system's certificates".to_owned(),
            status: None,
        };
        let builder = Client::builder()
            // The environment is the operator's shell, not their wish.
            .no_proxy()
            .redirect(Policy::none())
            .referer(false)
            .http1_only()
            .timeout(self.pace.call)
            .connect_timeout(self.pace.connect)
            .pool_max_idle_per_host(1)
            .pool_idle_timeout(IDLE)
            .dns_resolver(Arc::new(AbsoluteNames))
            .user_agent(concat!("farrier/", env!("CARGO_PKG_VERSION")));
        let builder = match kind {
            Kind::Plain => builder.tls_certs_only([]),
            Kind::Tls(Trust::System) => builder,
            Kind::Tls(Trust::Only(pem)) => {
                builder.tls_backend_preconfigured(given::config(pem).map_err(|_| unusable())?)
            }
            Kind::Tls(Trust::Nothing) => builder.tls_danger_accept_invalid_certs(true),
        };
        let builder = match &self.proxy {
            Some(proxy) => builder.proxy(proxy.clone()),
            None => builder,
        };
        builder.build().map_err(|_| unusable())
    }
}

impl Connector for RedfishConnector {
    fn connect<'a>(&'a self, access: &'a HostAccess) -> Call<'a, Arc<dyn Bmc>> {
        Box::pin(async move {
            let gate = self.gates.of(&access.base.origin().ascii_serialization());
            let transport = Transport::new(self.client(access)?, access.clone(), gate);
            let known = Arc::clone(&self.known);
            let bmc = RedfishBmc::connect(transport, self.pace, known, Service::of(access)).await?;
            Ok(Arc::new(bmc) as Arc<dyn Bmc>)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proxies_are_plain_urls_and_errors_do_not_repeat_them() {
        for good in ["http://proxy:3128", "https://user:secret@proxy:3128", "http://192.0.2.1:3128/"] {
            assert!(parse_proxy(good).is_ok(), "{good}");
        }
        for bad in
            ["socks5://proxy", "http://proxy/path", "http://proxy/?secret", "http://proxy#x", "proxy", ""]
        {
            let error = parse_proxy(bad).unwrap_err();
            assert!(bad.is_empty() || !error.to_string().contains("secret"), "{bad}");
        }
    }
}
