//! Requests to a management controller, and what its responses say: bytes in, values out.
//!
//! Numbers are those of the IPMI specification v2.0, revision 1.1: Get Channel Info in section 22.24, Get LAN
//! Configuration Parameters in section 23.2 with table 23-4.

use std::net::{Ipv4Addr, Ipv6Addr};

use farrier_shared::contract::MacAddress;

/// Network functions of requests.
const APP: u8 = 0x06;
const TRANSPORT: u8 = 0x0c;
const GET_CHANNEL_INFO: u8 = 0x42;
const GET_LAN_PARAMETER: u8 = 0x02;
/// Channel media: 802.3, and other networks.
const LAN: [u8; 2] = [0x04, 0x06];
/// Marks an IPv6 address set as switched on.
const ENABLED: u8 = 0x80;
/// Marks a VLAN as in use.
const TAGGED: u16 = 0x8000;
/// Completion code of a command that is not known at all.
const UNKNOWN_COMMAND: u8 = 0xc1;

/// One request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Request {
    /// Network function, which says how to read `command`.
    pub(super) netfn: u8,
    /// The command.
    pub(super) command: u8,
    /// Its data.
    pub(super) data: Vec<u8>,
}

impl Request {
    /// What kind of channel this is.
    pub(super) fn channel_info(channel: u8) -> Self {
        Self { netfn: APP, command: GET_CHANNEL_INFO, data: vec![channel] }
    }

    /// One parameter of a channel's network configuration; `set` counts the addresses where there may be several.
    pub(super) fn lan(channel: u8, parameter: Parameter, set: u8) -> Self {
        Self { netfn: TRANSPORT, command: GET_LAN_PARAMETER, data: vec![channel, parameter as u8, set, 0] }
    }
}

/// What can be asked of a channel's network configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Parameter {
    Address = 3,
    Source = 4,
    Mac = 5,
    Mask = 6,
    Gateway = 12,
    Vlan = 20,
    /// Which of IPv4 and IPv6 are on.
    Families = 51,
    /// How many IPv6 addresses there can be.
    Ipv6Status = 55,
    Ipv6Static = 56,
    Ipv6Dynamic = 59,
}

/// Why a response says nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ResponseError {
    /// It says why not.
    #[error("the BMC refused: completion code {code:#04x}")]
    Refused {
        /// Completion code.
        code: u8,
    },
    /// It ends too early.
    #[error("the BMC's response has {got} bytes, expected at least {expected}")]
    Short {
        /// What was expected.
        expected: usize,
        /// What came.
        got: usize,
    },
}

impl ResponseError {
    /// Whether to ask any more of this command is in vain.
    pub(super) fn is_unknown_command(self) -> bool {
        self == Self::Refused { code: UNKNOWN_COMMAND }
    }
}

/// Where the data of a response begins, and where the value of a parameter: its revision comes before it.
const DATA: usize = 1;
const VALUE: usize = 2;

/// The `N` bytes at `at`, unless the response is a refusal.
fn bytes<const N: usize>(response: &[u8], at: usize) -> Result<[u8; N], ResponseError> {
    match response.first() {
        Some(0) | None => {
            let bytes = response.get(at..).and_then(|rest| rest.first_chunk().copied());
            bytes.ok_or(ResponseError::Short { expected: at + N, got: response.len() })
        }
        Some(code) => Err(ResponseError::Refused { code: *code }),
    }
}

/// Whether this channel is a network.
pub(super) fn is_lan(response: &[u8]) -> Result<bool, ResponseError> {
    let [_channel, medium] = bytes(response, DATA)?;
    Ok(LAN.contains(&(medium & 0x7f)))
}

/// An IPv4 address; [`None`] where none is set.
pub(super) fn address(response: &[u8]) -> Result<Option<Ipv4Addr>, ResponseError> {
    let ip = Ipv4Addr::from(bytes::<4>(response, VALUE)?);
    Ok(Some(ip).filter(|ip| !ip.is_unspecified() && !ip.is_broadcast()))
}

/// Length of the network's prefix in bits; [`None`] for a mask with holes, or without any bit.
pub(super) fn prefix(response: &[u8]) -> Result<Option<u32>, ResponseError> {
    let mask = u32::from_be_bytes(bytes(response, VALUE)?);
    let ones = mask.leading_ones();
    Ok(Some(ones).filter(|ones| *ones > 0 && ones + mask.trailing_zeros() == 32))
}

/// Where the address is from, in a word; [`None`] where that is not said.
pub(super) fn source(response: &[u8]) -> Result<Option<&'static str>, ResponseError> {
    let [source] = bytes(response, VALUE)?;
    Ok(match source & 0x0f {
        1 => Some("static"),
        2 => Some("dhcp"),
        3 => Some("firmware"),
        4 => Some("other"),
        _ => None,
    })
}

/// An Ethernet address; [`None`] for all zeroes, all ones and group addresses, which no interface has.
pub(super) fn mac(response: &[u8]) -> Result<Option<MacAddress>, ResponseError> {
    let bytes: [u8; 6] = bytes(response, VALUE)?;
    Ok((bytes != [0; 6] && bytes[0] & 1 == 0).then(|| MacAddress::from_bytes(bytes)))
}

/// The VLAN it talks in; [`None`] when it talks untagged.
pub(super) fn vlan(response: &[u8]) -> Result<Option<u16>, ResponseError> {
    let word = u16::from_le_bytes(bytes(response, VALUE)?);
    let id = word & 0x0fff;
    Ok((word & TAGGED != 0 && (1..=4094).contains(&id)).then_some(id))
}

/// Whether IPv6 is on.
pub(super) fn has_ipv6(response: &[u8]) -> Result<bool, ResponseError> {
    let [families] = bytes(response, VALUE)?;
    Ok(matches!(families, 1 | 2))
}

/// How many static and how many dynamic IPv6 addresses there can be.
pub(super) fn ipv6_counts(response: &[u8]) -> Result<[u8; 2], ResponseError> {
    bytes(response, VALUE)
}

/// An IPv6 address of a set that is in use; [`None`] for one that is not. `is_static` sets can be switched off.
pub(super) fn ipv6_address(response: &[u8], is_static: bool) -> Result<Option<Ipv6Addr>, ResponseError> {
    let [_set, source, rest @ ..] = bytes::<20>(response, VALUE)?;
    let [address @ .., _prefix, status] = rest;
    let ip = Ipv6Addr::from(address);
    let in_use = status == 0 && (!is_static || source & ENABLED != 0);
    Ok(Some(ip).filter(|ip| in_use && !ip.is_unspecified() && !ip.is_loopback() && !ip.is_multicast()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn requests_are_written_as_the_specification_has_them() {
        let info = Request::channel_info(8);
        assert_eq!((info.netfn, info.command, info.data.as_slice()), (0x06, 0x42, &[8][..]));
        let lan = Request::lan(1, Parameter::Ipv6Dynamic, 3);
        assert_eq!((lan.netfn, lan.command, lan.data.as_slice()), (0x0c, 0x02, &[1, 59, 3, 0][..]));
    }

    #[test]
    fn a_channel_is_a_network_by_its_medium() {
        // 802.3 with IPMB protocol, sessions of several kinds, vendor of the specification.
        assert_eq!(is_lan(&[0, 1, 0x04, 0x01, 0x80, 0xf2, 0x1b, 0, 0, 0]), Ok(true));
        assert_eq!(is_lan(&[0, 2, 0x86]), Ok(true));
        for medium in [0x01, 0x05, 0x08, 0x0c] {
            assert_eq!(is_lan(&[0, 0x0f, medium, 0x05]), Ok(false), "{medium:#x}");
        }
    }

    #[test]
    fn parameters_are_read_after_their_revision() {
        assert_eq!(address(&[0, 0x11, 10, 0, 9, 7]), Ok(Some(Ipv4Addr::new(10, 0, 9, 7))));
        assert_eq!(address(&[0, 0x11, 0, 0, 0, 0]), Ok(None));
        assert_eq!(address(&[0, 0x11, 255, 255, 255, 255]), Ok(None));
        let read = mac(&[0, 0x11, 0xac, 0x1f, 0x6b, 0x8a, 0x5f, 0xc8]).unwrap().unwrap();
        assert_eq!(read.to_string(), "ac:1f:6b:8a:5f:c8");
        assert_eq!(mac(&[0, 0x11, 0, 0, 0, 0, 0, 0]), Ok(None));
        assert_eq!(mac(&[0, 0x11, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]), Ok(None));
        for (code, word) in [
            (0, None),
            (1, Some("static")),
            (0xf2, Some("dhcp")),
            (3, Some("firmware")),
            (4, Some("other")),
            (9, None),
        ] {
            assert_eq!(source(&[0, 0x11, code]), Ok(word), "{code}");
        }
        for (mask, length) in [
            ([255, 255, 255, 0], Some(24)),
            ([255, 255, 255, 255], Some(32)),
            ([255, 255, 240, 0], Some(20)),
            ([255, 0, 255, 0], None),
            ([0, 0, 0, 0], None),
            ([0, 0, 0, 255], None),
        ] {
            let [a, b, c, d] = mask;
            assert_eq!(prefix(&[0, 0x11, a, b, c, d]), Ok(length), "{mask:?}");
        }
        for (bytes, id) in [
            ([0x64, 0x80], Some(100)),
            ([0xfe, 0x8f], Some(4094)),
            ([0x64, 0x00], None),
            ([0x00, 0x80], None),
            ([0xff, 0x8f], None),
        ] {
            assert_eq!(vlan(&[0, 0x11, bytes[0], bytes[1]]), Ok(id), "{bytes:?}");
        }
        assert_eq!([0, 1, 2, 9].map(|on| has_ipv6(&[0, 0x11, on]).unwrap()), [false, true, true, false]);
        assert_eq!(ipv6_counts(&[0, 0x11, 1, 15, 3]), Ok([1, 15]));
    }

    fn set(source: u8, address: Ipv6Addr, status: u8) -> Vec<u8> {
        [&[0, 0x11, 0, source][..], &address.octets(), &[64, status]].concat()
    }

    #[test]
    fn only_ipv6_addresses_in_use_count() {
        let ip: Ipv6Addr = "2001:db8::7".parse().unwrap();
        for (source, address, status, is_static, expected) in [
            (0x80, ip, 0, true, Some(ip)),
            (0x00, ip, 0, true, None),
            (0x80, ip, 1, true, None),
            (0x01, ip, 0, false, Some(ip)),
            (0x02, ip, 3, false, None),
            (0x01, Ipv6Addr::UNSPECIFIED, 0, false, None),
            (0x01, Ipv6Addr::LOCALHOST, 0, false, None),
        ] {
            let found = ipv6_address(&set(source, address, status), is_static);
            assert_eq!(found, Ok(expected), "{source:#x} {address} {status}");
        }
    }

    #[test]
    fn a_refusal_says_its_code_and_a_short_response_its_length() {
        assert_eq!(address(&[0x80]), Err(ResponseError::Refused { code: 0x80 }));
        assert_eq!(address(&[0xcc, 0, 10, 0, 9, 7]), Err(ResponseError::Refused { code: 0xcc }));
        assert_eq!(is_lan(&[0xc1]).unwrap_err().to_string(), "the BMC refused: completion code 0xc1");
        assert!(is_lan(&[0xc1]).unwrap_err().is_unknown_command());
        assert!(!is_lan(&[0xcc]).unwrap_err().is_unknown_command());
        let whole = [0, 0x11, 10, 0, 9, 7];
        for cut in 0..whole.len() {
            assert_eq!(address(&whole[..cut]), Err(ResponseError::Short { expected: 6, got: cut }));
        }
        assert_eq!(is_lan(&[]), Err(ResponseError::Short { expected: 3, got: 0 }));
        assert_eq!(is_lan(&[0, 1]), Err(ResponseError::Short { expected: 3, got: 2 }));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_fault(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let _ = (is_lan(&bytes), address(&bytes), prefix(&bytes), source(&bytes), mac(&bytes), vlan(&bytes));
            let _ = (has_ipv6(&bytes), ipv6_counts(&bytes), ipv6_address(&bytes, true), ipv6_address(&bytes, false));
        }
    }
}
