//! Whether another machine has an IPv4 address already (RFC 5227, section 2.1), asked before it is used.
//!
//! Answers alone count, and those who speak from the address: switches that track devices send questions of their own
//! for it, which mean nothing.

use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::time::Duration;

use farrier_shared::contract::MacAddress;
use tokio::io::unix::AsyncFd;
use tokio::time::{Instant, timeout_at};

use super::hear::hear;
use super::links::Link;
use crate::sys::packet;

/// Length of a message for Ethernet and IPv4, in bytes (RFC 826).
const LEN: usize = 28;
/// Ethernet, IPv4, lengths of their addresses.
const HEAD: [u8; 6] = [0, 1, 8, 0, 6, 4];
const REQUEST: u16 = 1;
/// Longest packet taken: short frames are padded.
const MAX_PACKET: usize = 128;
/// Questions that are asked. The RFC allows shorter waits than its own seconds where links answer sooner (section 2.2).
const PROBES: u32 = 3;
/// Wait after each question.
const WAIT: Duration = Duration::from_millis(250);

/// What somebody says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Claim {
    address: Ipv4Addr,
    mac: MacAddress,
}

/// Asks for `target` from no address, as is due to who has none yet.
fn probe(own: MacAddress, target: Ipv4Addr) -> Vec<u8> {
    let mut packet = HEAD.to_vec();
    packet.extend(REQUEST.to_be_bytes());
    packet.extend(own.as_bytes());
    packet.extend([0; 10]);
    packet.extend(target.octets());
    packet
}

/// The claim in an ARP packet; [`None`] for questions from no address, and for anything else.
fn read(packet: &[u8]) -> Option<Claim> {
    let packet = packet.get(..LEN)?;
    let operation = u16::from_be_bytes([packet[6], packet[7]]);
    if packet[..6] != HEAD || !(1..=2).contains(&operation) {
        return None;
    }
    let address = Ipv4Addr::from(<[u8; 4]>::try_from(packet.get(14..18)?).ok()?);
    let mac = MacAddress::from_bytes(packet.get(8..14)?.try_into().ok()?);
    (!address.is_unspecified()).then_some(Claim { address, mac })
}

/// What was heard while an address was asked for.
#[derive(Clone, Debug)]
struct Check {
    own: MacAddress,
    address: Ipv4Addr,
    /// The next hop, which may answer for every address of the link.
    router: Option<Ipv4Addr>,
    holder: Option<MacAddress>,
    router_is: Option<MacAddress>,
}

impl Check {
    fn new(own: MacAddress, address: Ipv4Addr, router: Option<Ipv4Addr>) -> Self {
        let router = router.filter(|router| *router != address);
        Self { own, address, router, holder: None, router_is: None }
    }

    fn hear(&mut self, claim: Claim) {
        if claim.address == self.address && claim.mac != self.own {
            self.holder = Some(claim.mac);
        }
        if Some(claim.address) == self.router {
            self.router_is = Some(claim.mac);
        }
    }

    /// Who else has the address. A router that answers for it as well as for itself speaks for others, as with proxy
    /// ARP, and has it not.
    fn verdict(&self) -> Option<MacAddress> {
        self.holder.filter(|holder| Some(*holder) != self.router_is)
    }
}

/// The machine on the link that has `address`, if there is one; takes three quarters of a second. `router` is the next
/// hop. Without a socket nobody is found: a check that cannot be made must not keep a machine off the network.
pub(super) async fn holder(link: &Link, address: Ipv4Addr, router: Option<Ipv4Addr>) -> Option<MacAddress> {
    let socket = match packet::arp_socket(link.index) {
        Ok(socket) => socket,
        Err(error) => {
            tracing::debug!(interface = %link.name, %error, "not asked whether the address is taken");
            return None;
        }
    };
    let mut check = Check::new(link.mac, address, router);
    for _ in 0..PROBES {
        ask(&socket, link, address);
        if let Some(router) = check.router {
            ask(&socket, link, router);
        }
        let end = Instant::now() + WAIT;
        while let Ok(claim) = timeout_at(end, hear(&socket, MAX_PACKET, read)).await {
            check.hear(claim);
        }
    }
    check.verdict()
}

fn ask(socket: &AsyncFd<OwnedFd>, link: &Link, target: Ipv4Addr) {
    let packet = probe(link.mac, target);
    if let Err(error) = packet::send_broadcast(socket.get_ref(), link.index, packet::ARP, &packet) {
        tracing::debug!(interface = %link.name, %error, "ARP question not sent");
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 50);
    const ROUTER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);

    fn mac(last: u8) -> MacAddress {
        MacAddress::from_bytes([2, 0, 0, 0, 0, last])
    }

    fn answer(address: Ipv4Addr, from: u8) -> Vec<u8> {
        let mut packet = probe(mac(from), ADDRESS);
        packet[7] = 2;
        packet[14..18].copy_from_slice(&address.octets());
        packet
    }

    #[test]
    fn a_question_names_us_and_claims_nothing() {
        let packet = probe(mac(1), ADDRESS);
        assert_eq!(packet.len(), LEN);
        assert_eq!(
            (&packet[8..14], &packet[24..]),
            (mac(1).as_bytes().as_slice(), ADDRESS.octets().as_slice())
        );
        assert_eq!(read(&packet), None, "as a switch that tracks devices asks");
    }

    #[test]
    fn answers_and_announcements_are_claims_and_other_packets_are_not() {
        let claim = Some(Claim { address: ADDRESS, mac: mac(9) });
        let mut padded = answer(ADDRESS, 9);
        padded.resize(46, 0);
        assert_eq!(read(&padded), claim);
        let mut announced = answer(ADDRESS, 9);
        announced[7] = 1;
        assert_eq!(read(&announced), claim);
        for (at, value) in [(1, 6), (2, 0x86), (4, 8), (5, 16), (7, 3)] {
            let mut other = answer(ADDRESS, 9);
            other[at] = value;
            assert_eq!(read(&other), None, "byte {at}");
        }
        assert_eq!(read(&answer(ADDRESS, 9)[..LEN - 1]), None);
    }

    #[test]
    fn an_address_is_taken_when_another_machine_claims_it_for_itself() {
        let verdict = |claims: &[(Ipv4Addr, u8)], router| {
            let mut check = Check::new(mac(1), ADDRESS, router);
            for (address, from) in claims {
                check.hear(Claim { address: *address, mac: mac(*from) });
            }
            check.verdict()
        };
        let other = Ipv4Addr::new(10, 0, 0, 51);
        for (why, claims, router, expected) in [
            ("nobody answers", &[][..], Some(ROUTER), None),
            ("another machine", &[(ADDRESS, 9), (ROUTER, 7)], Some(ROUTER), Some(9)),
            ("no router to compare with", &[(ADDRESS, 9)], None, Some(9)),
            ("our own, as a bridge may send it back", &[(ADDRESS, 1)], None, None),
            ("another address", &[(other, 9)], None, None),
            ("a router that answers for all", &[(ADDRESS, 7), (ROUTER, 7)], Some(ROUTER), None),
            ("the router itself, whose address was leased", &[(ADDRESS, 7)], Some(ADDRESS), Some(7)),
        ] {
            assert_eq!(verdict(claims, router), expected.map(mac), "{why}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_fault(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = read(&bytes);
        }
    }
}
