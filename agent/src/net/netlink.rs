//! Puts a plan onto an interface.

use std::net::{IpAddr, Ipv4Addr};

use futures_util::TryStreamExt as _;
use rtnetlink::packet_route::route::RouteScope;
use rtnetlink::{Handle, LinkUnspec, RouteMessageBuilder};

use super::config::{AddressPlan, mask};

/// The kernel did not take a setting.
#[derive(Debug, thiserror::Error)]
#[error("{what} on interface {index}: {cause}")]
pub struct NetlinkError {
    /// What was being set.
    what: String,
    /// On which interface.
    index: u32,
    /// What the kernel said.
    cause: String,
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

    /// Sets an interface up.
    ///
    /// # Errors
    /// When the kernel refuses, such as for want of firmware.
    pub(super) async fn up(&self, index: u32) -> Result<(), NetlinkError> {
        let message = LinkUnspec::new_with_index(index).up().build();
        self.handle.link().set(message).execute().await.map_err(|e| failed("setting up", index, &e))
    }

    /// Sets an interface down, which takes its routes along.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub(super) async fn down(&self, index: u32) -> Result<(), NetlinkError> {
        let message = LinkUnspec::new_with_index(index).down().build();
        self.handle.link().set(message).execute().await.map_err(|e| failed("setting down", index, &e))
    }

    /// Configures address, MTU and routes. A refused MTU is only noted: the default works, if slower.
    ///
    /// # Errors
    /// The first address or route the kernel refuses.
    pub(super) async fn configure(&self, index: u32, plan: &AddressPlan) -> Result<(), NetlinkError> {
        if let Some(mtu) = plan.mtu {
            let message = LinkUnspec::new_with_index(index).mtu(u32::from(mtu)).build();
            if let Err(error) = self.handle.link().set(message).execute().await {
                tracing::warn!(index, mtu, %error, "MTU not set");
            }
        }
        self.handle
            .address()
            .add(index, IpAddr::V4(plan.address), plan.prefix_len)
            .replace()
            .execute()
            .await
            .map_err(|e| failed(&format!("address {}/{}", plan.address, plan.prefix_len), index, &e))?;
        for hop in hops(plan) {
            let mut route = RouteMessageBuilder::<Ipv4Addr>::new()
                .destination_prefix(hop.destination, hop.prefix_len)
                .output_interface(index)
                .pref_source(plan.address);
            route = match hop.gateway {
                Some(gateway) => route.gateway(gateway),
                None => route.scope(RouteScope::Link),
            };
            if hop.on_link {
                route = route.onlink();
            }
            self.handle.route().add(route.build()).replace().execute().await.map_err(|e| {
                failed(&format!("route to {}/{}", hop.destination, hop.prefix_len), index, &e)
            })?;
        }
        Ok(())
    }

    /// Takes every IPv4 address off an interface, and with them its routes.
    pub(super) async fn clear(&self, index: u32) {
        let addresses = self.handle.address().get().set_link_index_filter(index).execute();
        let Ok(addresses) = addresses.try_collect::<Vec<_>>().await else { return };
        for address in addresses {
            let v4 = rtnetlink::packet_route::AddressFamily::Inet;
            if address.header.family == v4 && address.header.index == index {
                // Gone already is as good.
                let _ = self.handle.address().del(address).execute().await;
            }
        }
    }
}

fn failed(what: &str, index: u32, cause: &rtnetlink::Error) -> NetlinkError {
    NetlinkError { what: what.to_owned(), index, cause: cause.to_string() }
}

/// A route as the kernel takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Hop {
    destination: Ipv4Addr,
    prefix_len: u8,
    gateway: Option<Ipv4Addr>,
    /// The gateway is on the link although no subnet says so.
    on_link: bool,
}

/// Routes in an order the kernel accepts: those on the link before those through a gateway, narrow before wide.
fn hops(plan: &AddressPlan) -> Vec<Hop> {
    let mut hops: Vec<Hop> = plan
        .routes
        .iter()
        .filter(|r| r.via != plan.address)
        .map(|r| Hop {
            destination: Ipv4Addr::from(u32::from(r.destination) & mask(r.prefix_len)),
            prefix_len: r.prefix_len.min(32),
            gateway: (!r.via.is_unspecified()).then_some(r.via),
            on_link: !r.via.is_unspecified() && !plan.on_link(r.via),
        })
        .collect();
    hops.sort_by_key(|h| (h.gateway.is_some(), std::cmp::Reverse(h.prefix_len)));
    hops
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::config::Route;

    #[test]
    fn a_gateway_outside_the_subnet_is_reached_on_the_link() {
        let plan = AddressPlan::from_static(&"10.1.2.3::192.0.2.1:32".parse().unwrap());
        let hops = hops(&plan);
        assert_eq!(hops.len(), 1);
        assert!(hops[0].on_link);
        assert_eq!(hops[0].gateway, Some(Ipv4Addr::new(192, 0, 2, 1)));
    }

    #[test]
    fn link_routes_come_first_and_host_bits_are_dropped() {
        let mut plan = AddressPlan::from_static(&"10.1.2.3::10.1.2.1:24".parse().unwrap());
        plan.routes.push(Route {
            destination: Ipv4Addr::new(169, 254, 169, 254),
            prefix_len: 16,
            via: Ipv4Addr::UNSPECIFIED,
        });
        let hops = hops(&plan);
        assert_eq!((hops[0].gateway, hops[0].destination), (None, Ipv4Addr::new(169, 254, 0, 0)));
        assert_eq!((hops[1].prefix_len, hops[1].on_link), (0, false));
    }
}
