//! IPv4 and UDP headers around a DHCP payload: before there is an address, the kernel's own stack is no use.

use std::net::Ipv4Addr;

/// Port of DHCP clients.
pub const CLIENT_PORT: u16 = 68;
/// Port of DHCP servers.
pub const SERVER_PORT: u16 = 67;

const IP_HEADER: usize = 20;
const UDP_HEADER: usize = 8;
const PROTOCOL_UDP: u8 = 17;

/// An IPv4 packet that carries `payload` from the client port of `0.0.0.0` to the server port of everybody.
/// `None` when the payload does not fit a packet.
pub fn broadcast(payload: &[u8]) -> Option<Vec<u8>> {
    let udp_len = u16::try_from(UDP_HEADER + payload.len()).ok()?;
    let total = u16::try_from(IP_HEADER + UDP_HEADER + payload.len()).ok()?;
    let (source, destination) = (Ipv4Addr::UNSPECIFIED.octets(), Ipv4Addr::BROADCAST.octets());

    let mut packet = Vec::with_capacity(usize::from(total));
    packet.extend([0x45, 0x10]); // version 4, five words; low delay, as DHCP has it by custom
    packet.extend(total.to_be_bytes());
    packet.extend([0, 0, 0, 0, 64, PROTOCOL_UDP, 0, 0]); // id, fragment, ttl, protocol, checksum to come
    packet.extend(source);
    packet.extend(destination);
    let checksum = checksum(&packet);
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());

    let mut udp = Vec::with_capacity(usize::from(udp_len));
    udp.extend(CLIENT_PORT.to_be_bytes());
    udp.extend(SERVER_PORT.to_be_bytes());
    udp.extend(udp_len.to_be_bytes());
    udp.extend([0, 0]);
    udp.extend(payload);
    let mut pseudo = Vec::with_capacity(udp.len() + 12);
    pseudo.extend(source);
    pseudo.extend(destination);
    pseudo.extend([0, PROTOCOL_UDP]);
    pseudo.extend(udp_len.to_be_bytes());
    pseudo.extend(&udp);
    // Zero would mean "no checksum" (RFC 768).
    let sum = match self::checksum(&pseudo) {
        0 => 0xffff,
        sum => sum,
    };
    udp[6..8].copy_from_slice(&sum.to_be_bytes());
    packet.extend(udp);
    Some(packet)
}

/// The UDP payload of an IPv4 packet from a server's port to the client port; `None` for anything else.
///
/// The UDP checksum is not verified: a packet of a virtual machine on the same host arrives before its
/// checksum was computed.
pub fn payload(packet: &[u8]) -> Option<&[u8]> {
    let first = *packet.first()?;
    let header = usize::from(first & 0x0f) * 4;
    if first >> 4 != 4 || header < IP_HEADER || *packet.get(9)? != PROTOCOL_UDP {
        return None;
    }
    let total = usize::from(be16(packet, 2)?);
    let fragment = be16(packet, 6)? & 0x3fff; // more fragments, or an offset
    let datagram = packet.get(header..total)?;
    if fragment != 0 || be16(datagram, 0)? != SERVER_PORT || be16(datagram, 2)? != CLIENT_PORT {
        return None;
    }
    datagram.get(UDP_HEADER..usize::from(be16(datagram, 4)?))
}

fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

/// The Internet checksum (RFC 1071).
fn checksum(bytes: &[u8]) -> u16 {
    let mut sum: u32 = 0;
    for pair in bytes.chunks(2) {
        let low = pair.get(1).copied().unwrap_or(0);
        sum += u32::from(u16::from_be_bytes([pair[0], low]));
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !u16::try_from(sum).unwrap_or(u16::MAX)
}
