//! What routers and DHCPv6 servers, or whoever plays them, may send.

use std::time::Duration;

use super::dhcp6::reply;
use super::ipv6::{Routers, advertisement};

/// An IPv6 packet, kept as that of a router that was heard.
pub fn router_advertisement(bytes: &[u8]) {
    let Some(said) = advertisement::read(bytes) else { return };
    assert!(said.router.is_unicast_link_local());
    let mut routers = Routers::default();
    for second in 0..2 {
        let now = Duration::from_secs(second);
        routers.heard(&said, now);
        assert!(routers.gateways(now).len() <= 1);
        assert!(routers.search(now).iter().all(|name| name.len() <= 253 && !name.contains(char::is_control)));
        let _ = (routers.dns(now), routers.managed(), routers.other());
    }
}

/// A server's message, about the association in its first four bytes.
pub fn dhcp6(bytes: &[u8]) {
    let Some((iaid, payload)) = bytes.split_first_chunk() else { return };
    let Some(answer) = reply::read(payload, u32::from_be_bytes(*iaid)) else { return };
    assert!(answer.addresses.len() <= 4 && answer.dns.len() <= 4 && answer.ntp.len() <= 4);
    assert!(answer.addresses.iter().all(|leased| 0 < leased.valid && leased.preferred <= leased.valid));
    assert!(answer.server.len() <= 130);
}
