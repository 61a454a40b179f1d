//! The kernel's network configuration: links, addresses and routes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use farrier_shared::contract::MacAddress;
use farrier_shared::contract::options::{BondMode, VlanId};
use futures_util::TryStreamExt as _;
use rtnetlink::packet_route::AddressFamily;
use rtnetlink::packet_route::address::{AddressAttribute, AddressFlags, AddressHeaderFlags, AddressMessage};
use rtnetlink::packet_route::link::{self, BondLacpRate, LinkAttribute, LinkFlags};
use rtnetlink::packet_route::route::{RouteAttribute, RouteMessage, RouteProtocol, RouteScope};
use rtnetlink::{Handle, LinkBond, LinkUnspec, LinkVlan, RouteMessageBuilder};
use tokio::time::sleep;

use super::config::{AddressPlan, Ipv6Plan};
use super::routes::{Hop, hops, stale};

/// How often an interface is set up until it is believed that it cannot be, and the wait in between.
const UP_TRIES: u32 = 4;
const UP_PAUSE: Duration = Duration::from_secs(1);
/// How often a bond looks at its members' links, in milliseconds.
const MIIMON: u32 = 100;
/// Metric of our default route by IPv6: above the kernel's own 1024, which takes over once it knows a router.
const METRIC6: u32 = 2048;

/// The kernel did not take a setting.
#[derive(Debug, thiserror::Error)]
#[error("{what} on interface {index}: {cause}")]
pub struct NetlinkError {
    /// What was being set.
    what: String,
    /// On which interface; 0 for one that was to be made.
    index: u32,
    /// What the kernel said.
    cause: String,
}

impl NetlinkError {
    pub(super) fn new(what: &str, index: u32, cause: &(impl ToString + ?Sized)) -> Self {
        Self { what: what.to_owned(), index, cause: cause.to_string() }
    }
}

/// An IPv6 address as the kernel has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Present6 {
    pub(super) address: Ipv6Addr,
    /// Still being looked for on the link, so not to be used.
    pub(super) tentative: bool,
    /// Somebody else has it.
    pub(super) duplicate: bool,
    /// Its preferred time is over.
    pub(super) deprecated: bool,
}

/// A connection to the kernel's network configuration.
#[derive(Clone, Debug)]
pub(super) struct Netlink {
    handle: Handle,
}

impl Netlink {
    /// Opens a connection, served by a task of its own.
    ///
    /// # Errors
    /// When the kernel gives no socket.
    pub(super) fn open() -> std::io::Result<Self> {
        let (connection, handle, _) = rtnetlink::new_connection()?;
        tokio::spawn(connection);
        Ok(Self { handle })
    }

    async fn set(&self, what: &str, index: u32, message: link::LinkMessage) -> Result<(), NetlinkError> {
        self.handle.link().set(message).execute().await.map_err(|e| failed(what, index, &e))
    }

    /// Sets an interface up; tried again, since adapters refuse while their firmware is still starting.
    ///
    /// # Errors
    /// When the kernel goes on refusing, such as for want of firmware.
    pub(super) async fn up(&self, index: u32) -> Result<(), NetlinkError> {
        let mut tries = 1;
        loop {
            let done = self.set("setting up", index, LinkUnspec::new_with_index(index).up().build()).await;
            if done.is_ok() || tries >= UP_TRIES {
                return done;
            }
            tries += 1;
            sleep(UP_PAUSE).await;
        }
    }

    /// Sets an interface down, which takes its routes along.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub(super) async fn down(&self, index: u32) -> Result<(), NetlinkError> {
        self.set("setting down", index, LinkUnspec::new_with_index(index).down().build()).await
    }

    /// Whether a cable is in and the other side is up; `false` too while the interface is down.
    pub(super) async fn has_carrier(&self, index: u32) -> bool {
        let links = self.handle.link().get().match_index(index).execute();
        let links = links.try_collect::<Vec<_>>().await.unwrap_or_default();
        links.iter().any(|l| l.header.index == index && l.header.flags.contains(LinkFlags::LowerUp))
    }

    async fn mtu(&self, index: u32) -> Option<u32> {
        let links = self.handle.link().get().match_index(index).execute();
        let links = links.try_collect::<Vec<_>>().await.ok()?;
        let attributes = links.into_iter().find(|l| l.header.index == index)?.attributes;
        attributes.iter().find_map(|a| if let LinkAttribute::Mtu(mtu) = a { Some(*mtu) } else { None })
    }

    /// Sets the MTU of an interface, that of the one below it first where it is smaller. A refusal is only noted: the
    /// default works, if slower.
    pub(super) async fn set_mtu(&self, index: u32, base: Option<u32>, mtu: u16) {
        let mtu = u32::from(mtu);
        let small_base = match base {
            Some(base) if self.mtu(base).await.is_some_and(|now| now < mtu) => Some(base),
            _ => None,
        };
        for index in small_base.into_iter().chain([index]) {
            let message = LinkUnspec::new_with_index(index).mtu(mtu).build();
            if let Err(error) = self.set("MTU", index, message).await {
                tracing::warn!(mtu, %error, "MTU not set");
            }
        }
    }

    /// The index of an interface by name.
    async fn index_of(&self, name: &str) -> Result<u32, rtnetlink::Error> {
        let links = self.handle.link().get().match_name(name).execute();
        let links: Vec<_> = links.try_collect().await?;
        Ok(links.first().map_or(0, |l| l.header.index))
    }

    /// Makes a bond without members; its index.
    ///
    /// # Errors
    /// When the kernel refuses, as without the `bonding` module.
    pub(super) async fn add_bond(
        &self,
        name: &str,
        mac: MacAddress,
        mode: BondMode,
    ) -> Result<u32, NetlinkError> {
        let message = LinkBond::new(name).address(mac.as_bytes().to_vec()).miimon(MIIMON).min_links(1);
        let message = match mode {
            BondMode::ActiveBackup => message.mode(link::BondMode::ActiveBackup),
            // Fast: a switch is asked for a word every second, not every half minute.
            BondMode::Lacp => message.mode(link::BondMode::Ieee8023Ad).ad_lacp_rate(BondLacpRate::Fast),
        };
        self.add(&format!("bond {name}, mode {}", mode.as_str()), name, message.build()).await
    }

    /// Makes a VLAN over an interface; its index.
    ///
    /// # Errors
    /// When the kernel refuses, as without the `8021q` module.
    pub(super) async fn add_vlan(&self, name: &str, base: u32, id: VlanId) -> Result<u32, NetlinkError> {
        self.add(
            &format!("VLAN {id} over interface {base}"),
            name,
            LinkVlan::new(name, base, id.get()).build(),
        )
        .await
    }

    async fn add(&self, what: &str, name: &str, message: link::LinkMessage) -> Result<u32, NetlinkError> {
        self.handle.link().add(message).execute().await.map_err(|e| failed(what, 0, &e))?;
        self.index_of(name).await.map_err(|e| failed(what, 0, &e))
    }

    /// Makes an interface, which must be down, a member of a bond.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub(super) async fn join(&self, member: u32, bond: u32) -> Result<(), NetlinkError> {
        let message = LinkUnspec::new_with_index(member).controller(bond).build();
        self.set("joining the bond", member, message).await
    }

    /// Configures IPv4 address and routes. A refused route is only noted: what matters is whether the controller
    /// can be reached, and that is tried.
    ///
    /// # Errors
    /// When the kernel refuses the address.
    pub(super) async fn configure4(&self, index: u32, plan: &AddressPlan) -> Result<(), NetlinkError> {
        self.add_address(index, IpAddr::V4(plan.address), plan.prefix_len).await?;
        for hop in hops(plan) {
            let Hop { destination, prefix_len, .. } = hop;
            let route = route4(index, plan.address, &hop);
            if let Err(error) = self.handle.route().add(route).replace().execute().await {
                let error = failed(&format!("route to {destination}/{prefix_len}"), index, &error);
                tracing::warn!(%error, "a route was refused; going on without it");
            }
        }
        Ok(())
    }

    /// Takes off an interface what an earlier plan with the same address had and the present one has not.
    pub(super) async fn drop_stale4(&self, index: u32, old: &AddressPlan, new: &AddressPlan) {
        for hop in stale(old, new) {
            // Gone already, or never taken, is as good.
            let _ = self.handle.route().del(route4(index, old.address, &hop)).execute().await;
        }
        if old.prefix_len != new.prefix_len {
            let is_old = |a: &AddressMessage| a.header.prefix_len == old.prefix_len;
            self.clear(index, AddressFamily::Inet, is_old).await;
        }
    }

    /// Configures IPv6 addresses and the default route. A refused route is only noted, as with IPv4.
    ///
    /// # Errors
    /// The first address the kernel refuses.
    pub(super) async fn configure6(&self, index: u32, plan: &Ipv6Plan) -> Result<(), NetlinkError> {
        for own in &plan.addresses {
            self.add_address(index, IpAddr::V6(own.address), own.prefix_len).await?;
        }
        let Some(gateway) = plan.gateway else { return Ok(()) };
        let mut route = RouteMessageBuilder::<Ipv6Addr>::new()
            .destination_prefix(Ipv6Addr::UNSPECIFIED, 0)
            .output_interface(index)
            .priority(METRIC6)
            .gateway(gateway);
        if !plan.on_link(gateway) {
            route = route.onlink();
        }
        if let Err(error) = self.handle.route().add(route.build()).replace().execute().await {
            let error = failed(&format!("default route by {gateway}"), index, &error);
            tracing::warn!(%error, "a route was refused; going on without it");
        }
        Ok(())
    }

    async fn add_address(&self, index: u32, address: IpAddr, prefix_len: u8) -> Result<(), NetlinkError> {
        let request = self.handle.address().add(index, address, prefix_len).replace();
        request.execute().await.map_err(|e| failed(&format!("address {address}/{prefix_len}"), index, &e))
    }

    /// The IPv6 addresses of an interface, the link-local one among them.
    pub(super) async fn addresses6(&self, index: u32) -> Vec<Present6> {
        let addresses = self.handle.address().get().set_link_index_filter(index).execute();
        let addresses = addresses.try_collect::<Vec<_>>().await.unwrap_or_default();
        let present = addresses.iter().filter(|a| a.header.index == index).filter_map(|a| {
            let address = address6(a)?;
            let flags = a.attributes.iter().find_map(|attribute| match attribute {
                AddressAttribute::Flags(flags) => Some(*flags),
                _ => None,
            });
            let has = |flag| flags.is_some_and(|f| f.contains(flag));
            Some(Present6 {
                address,
                tentative: has(AddressFlags::Tentative),
                duplicate: has(AddressFlags::Dadfailed),
                deprecated: has(AddressFlags::Deprecated),
            })
        });
        present.collect()
    }

    /// Takes every IPv4 address off an interface, and with them its routes.
    pub(super) async fn clear4(&self, index: u32) {
        self.clear(index, AddressFamily::Inet, |_| true).await;
    }

    /// Takes off an interface the IPv6 addresses and routes that are not the kernel's own.
    pub(super) async fn clear6(&self, index: u32) {
        self.clear_routes6(index).await;
        // What the kernel made of a router's word has an end; the link-local address must stay.
        let ours = |a: &AddressMessage| {
            let local = address6(a).is_some_and(|ip| ip.is_unicast_link_local());
            a.header.flags.contains(AddressHeaderFlags::Permanent) && !local
        };
        self.clear(index, AddressFamily::Inet6, ours).await;
    }

    /// Takes these IPv6 addresses off an interface.
    pub(super) async fn remove6(&self, index: u32, addresses: &[Ipv6Addr]) {
        let named = |a: &AddressMessage| address6(a).is_some_and(|ip| addresses.contains(&ip));
        self.clear(index, AddressFamily::Inet6, named).await;
    }

    /// Takes off an interface the IPv6 routes that are not the kernel's own.
    pub(super) async fn clear_routes6(&self, index: u32) {
        let routes = RouteMessageBuilder::<Ipv6Addr>::new().build();
        let routes = self.handle.route().get(routes).execute().try_collect::<Vec<_>>().await;
        for route in routes.unwrap_or_default() {
            let here =
                route.attributes.iter().any(|a| matches!(a, RouteAttribute::Oif(oif) if *oif == index));
            if here && route.header.protocol == RouteProtocol::Static {
                let _ = self.handle.route().del(route).execute().await;
            }
        }
    }

    async fn clear(&self, index: u32, family: AddressFamily, which: impl Fn(&AddressMessage) -> bool) {
        let addresses = self.handle.address().get().set_link_index_filter(index).execute();
        let Ok(addresses) = addresses.try_collect::<Vec<_>>().await else { return };
        for address in addresses {
            if address.header.family == family && address.header.index == index && which(&address) {
                // Gone already is as good.
                let _ = self.handle.address().del(address).execute().await;
            }
        }
    }
}

fn failed(what: &str, index: u32, cause: &rtnetlink::Error) -> NetlinkError {
    NetlinkError::new(what, index, cause)
}

fn address6(message: &AddressMessage) -> Option<Ipv6Addr> {
    message.attributes.iter().find_map(|attribute| match attribute {
        AddressAttribute::Address(IpAddr::V6(ip)) => Some(*ip),
        _ => None,
    })
}

/// A route as it is set, and found again to be taken away.
fn route4(index: u32, source: Ipv4Addr, hop: &Hop) -> RouteMessage {
    let mut route = RouteMessageBuilder::<Ipv4Addr>::new()
        .destination_prefix(hop.destination, hop.prefix_len)
        .output_interface(index)
        .pref_source(source);
    route = match hop.gateway {
        Some(gateway) => route.gateway(gateway),
        None => route.scope(RouteScope::Link),
    };
    if hop.on_link {
        route = route.onlink();
    }
    route.build()
}
