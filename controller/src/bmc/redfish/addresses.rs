//! The addresses of a system's interfaces: good to know, and never a reason to call a BMC unwell.

use std::time::Duration;

use farrier_shared::lifecycle::fault::Failure;
use farrier_shared::resource::host::Address;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, timeout_at};

use super::model::{Collection, Interface, Link, System};
use super::transport::{Purpose, Transport};

/// Interfaces read for their addresses; more of them are a misread or a switch.
const MAX_INTERFACES: usize = 32;

const INTERFACES: Purpose = Purpose::query("show its network interfaces");

/// What could be read.
#[derive(Debug)]
pub(super) struct Read {
    /// [`None`] when no interface has shown any.
    pub(super) addresses: Option<Vec<Address>>,
    /// Whether every interface was read.
    pub(super) whole: bool,
}

/// Reads what can be read within `budget`. An interface that fails is left out: BMCs list adapters that are not there.
pub(super) async fn read(transport: &Transport, system: &System, budget: Duration) -> Read {
    let mut reader = Reader { transport, until: Instant::now() + budget, whole: true, over: false };
    for link in [&system.ethernet_interfaces, &system.network_interfaces] {
        let Some(Link { id }) = link.as_ref().filter(|link| !link.id.is_empty()) else { continue };
        let Some(list) = reader.get::<Collection>(id).await else { continue };
        let mut addresses = Vec::new();
        for member in list.members.iter().take(MAX_INTERFACES) {
            let Some(interface) = reader.get::<Interface>(&member.id).await else { continue };
            for address in interface.addresses() {
                if !addresses.contains(&address) {
                    addresses.push(address);
                }
            }
        }
        if !addresses.is_empty() {
            return Read { addresses: Some(addresses), whole: reader.whole };
        }
    }
    Read { addresses: None, whole: reader.whole }
}

struct Reader<'a> {
    transport: &'a Transport,
    until: Instant,
    /// Nothing has failed.
    whole: bool,
    /// Nothing more is asked.
    over: bool,
}

impl Reader<'_> {
    async fn get<T: DeserializeOwned>(&mut self, link: &str) -> Option<T> {
        if self.over {
            return None;
        }
        let bmc = || self.transport.authority();
        match timeout_at(self.until, self.transport.get(link, INTERFACES)).await {
            Ok(Ok(got)) => return Some(got.value),
            Ok(Err(error)) => {
                // An account must not be locked for the sake of addresses.
                self.over = error.failure() == Some(Failure::Login);
                tracing::debug!(bmc = bmc(), %error, "an interface is left out");
            }
            Err(_) => {
                self.over = true;
                tracing::debug!(bmc = bmc(), "its interfaces take too long; the others are left out");
            }
        }
        self.whole = false;
        None
    }
}
