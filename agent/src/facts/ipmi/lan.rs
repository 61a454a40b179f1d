//! The conversation: which channels of a management controller are networks, and how each is set up.
//!
//! A refusal leaves out one value. Silence ends it all: a controller that hangs would be silent to every request.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use farrier_shared::contract::MacAddress;
use serde::Serialize;

use super::message::{self, Parameter, Request, ResponseError};

/// Channels that may be networks (IPMI v2.0, table 6-1).
const CHANNELS: std::ops::RangeInclusive<u8> = 0x01..=0x0b;
/// Most IPv6 addresses asked for of each kind.
const MOST_ADDRESSES: u8 = 8;

/// Takes requests to a controller.
pub(super) trait Transport {
    /// Sends a request and waits for its response: completion code and data.
    ///
    /// # Errors
    /// When the device fails, or no response comes in time.
    fn exchange(&mut self, request: &Request) -> Result<Vec<u8>, TransportError>;
}

/// Why there is no response.
#[derive(Debug, thiserror::Error)]
pub(super) enum TransportError {
    /// The kernel refused.
    #[error("request {netfn:#04x} {command:#04x} to the BMC: {source}")]
    Device {
        /// Network function.
        netfn: u8,
        /// Command.
        command: u8,
        /// Why.
        source: io::Error,
    },
    /// Nothing came.
    #[error("request {netfn:#04x} {command:#04x} to the BMC: no response within {waited:?}")]
    Silent {
        /// Network function.
        netfn: u8,
        /// Command.
        command: u8,
        /// How long was waited.
        waited: Duration,
    },
}

/// One network channel; what the controller does not say is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::facts) struct Channel {
    /// Its number.
    pub(in crate::facts) channel: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::facts) mac: Option<MacAddress>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::facts) address: Option<Ipv4Addr>,
    /// Bits of the network's prefix.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::facts) prefix_length: Option<u32>,
    /// `static`, `dhcp`, `firmware` or `other`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::facts) address_source: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::facts) gateway: Option<Ipv4Addr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::facts) vlan: Option<u16>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(in crate::facts) ipv6_addresses: Vec<Ipv6Addr>,
}

impl Channel {
    fn is_known(&self) -> bool {
        self.mac.is_some() || self.address.is_some() || !self.ipv6_addresses.is_empty()
    }
}

/// Asks for every network channel and hands over each as it is known.
///
/// # Errors
/// When the controller cannot be talked to any more; what it said until then has been handed over.
pub(super) fn channels(
    transport: &mut impl Transport,
    mut found: impl FnMut(Channel),
) -> Result<(), TransportError> {
    for number in CHANNELS {
        match message::is_lan(&transport.exchange(&Request::channel_info(number))?) {
            Ok(true) => {}
            Err(error) if error.is_unknown_command() => return Ok(()),
            Ok(false) | Err(_) => continue,
        }
        let mut channel = Channel { channel: number, ..Channel::default() };
        let asked = ask(transport, &mut channel);
        if channel.is_known() {
            found(channel);
        }
        asked?;
    }
    Ok(())
}

fn ask(transport: &mut impl Transport, channel: &mut Channel) -> Result<(), TransportError> {
    use Parameter::*;
    let number = channel.channel;
    channel.mac = read(transport, number, Mac, 0, message::mac)?;
    channel.address = read(transport, number, Address, 0, message::address)?;
    if channel.address.is_some() {
        channel.prefix_length = read(transport, number, Mask, 0, message::prefix)?;
        channel.gateway = read(transport, number, Gateway, 0, message::address)?;
    }
    channel.address_source = read(transport, number, Source, 0, message::source)?;
    channel.vlan = read(transport, number, Vlan, 0, message::vlan)?;

    let is_on = read(transport, number, Families, 0, |r| message::has_ipv6(r).map(Some))?;
    if is_on != Some(true) {
        return Ok(());
    }
    let counts = read(transport, number, Ipv6Status, 0, |r| message::ipv6_counts(r).map(Some))?;
    for (kind, count) in [Ipv6Static, Ipv6Dynamic].into_iter().zip(counts.unwrap_or_default()) {
        for set in 0..count.min(MOST_ADDRESSES) {
            let parse = |r: &[u8]| message::ipv6_address(r, kind == Ipv6Static);
            channel.ipv6_addresses.extend(read(transport, number, kind, set, parse)?);
        }
    }
    Ok(())
}

/// One value; [`None`] when it is not set, or the controller refuses to say.
fn read<T>(
    transport: &mut impl Transport,
    channel: u8,
    parameter: Parameter,
    set: u8,
    parse: impl FnOnce(&[u8]) -> Result<Option<T>, ResponseError>,
) -> Result<Option<T>, TransportError> {
    let response = transport.exchange(&Request::lan(channel, parameter, set))?;
    Ok(parse(&response).unwrap_or_else(|error| {
        tracing::debug!(channel, ?parameter, %error, "the BMC does not say");
        None
    }))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;

    /// A controller with these responses; it refuses everything else, and falls silent after so many requests.
    struct Fake {
        responses: BTreeMap<Vec<u8>, Vec<u8>>,
        refusal: u8,
        requests: usize,
        silent_after: usize,
    }

    impl Fake {
        fn new(responses: &[(&[u8], &[u8])]) -> Self {
            let responses = responses.iter().map(|(q, a)| (q.to_vec(), a.to_vec())).collect();
            Self { responses, refusal: 0xcc, requests: 0, silent_after: usize::MAX }
        }

        fn says(mut self) -> (Vec<Channel>, usize, bool) {
            let mut all = Vec::new();
            let ended = channels(&mut self, |channel| all.push(channel));
            (all, self.requests, ended.is_ok())
        }
    }

    impl Transport for Fake {
        fn exchange(&mut self, request: &Request) -> Result<Vec<u8>, TransportError> {
            let (netfn, command) = (request.netfn, request.command);
            if self.requests == self.silent_after {
                return Err(TransportError::Silent { netfn, command, waited: Duration::from_secs(1) });
            }
            self.requests += 1;
            let key = [&[netfn, command][..], &request.data].concat();
            Ok(self.responses.get(&key).cloned().unwrap_or_else(|| vec![self.refusal]))
        }
    }

    const LAN: &[u8] = &[0, 1, 0x04, 0x01, 0x80, 0xf2, 0x1b, 0, 0, 0];
    const SERIAL: &[u8] = &[0, 2, 0x05, 0x01, 0x40, 0xf2, 0x1b, 0, 0, 0];
    const IPV6: &[u8] =
        &[0, 0x11, 0, 1, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0xae, 0x1f, 0x6b, 0xff, 0xfe, 0x8a, 0x5f, 0xc8, 64, 0];

    /// Two network channels, of which the second is not set up, between a serial line and nothing.
    fn server() -> Fake {
        Fake::new(&[
            (&[0x06, 0x42, 1], LAN),
            (&[0x06, 0x42, 2], SERIAL),
            (&[0x06, 0x42, 8], LAN),
            (&[0x0c, 0x02, 1, 3, 0, 0], &[0, 0x11, 10, 0, 9, 7]),
            (&[0x0c, 0x02, 1, 4, 0, 0], &[0, 0x11, 2]),
            (&[0x0c, 0x02, 1, 5, 0, 0], &[0, 0x11, 0xac, 0x1f, 0x6b, 0x8a, 0x5f, 0xc8]),
            (&[0x0c, 0x02, 1, 6, 0, 0], &[0, 0x11, 255, 255, 255, 0]),
            (&[0x0c, 0x02, 1, 12, 0, 0], &[0, 0x11, 10, 0, 9, 1]),
            (&[0x0c, 0x02, 1, 20, 0, 0], &[0, 0x11, 0x64, 0x80]),
            (&[0x0c, 0x02, 1, 51, 0, 0], &[0, 0x11, 2]),
            (&[0x0c, 0x02, 1, 55, 0, 0], &[0, 0x11, 1, 2, 3]),
            (&[0x0c, 0x02, 1, 59, 1, 0], IPV6),
            (&[0x0c, 0x02, 8, 3, 0, 0], &[0, 0x11, 0, 0, 0, 0]),
            (&[0x0c, 0x02, 8, 4, 0, 0], &[0, 0x11, 2]),
            (&[0x0c, 0x02, 8, 5, 0, 0], &[0, 0x11, 0xac, 0x1f, 0x6b, 0x8a, 0x5f, 0xc9]),
        ])
    }

    #[test]
    fn each_network_channel_is_told_with_what_is_set() {
        let (all, _, ended) = server().says();
        assert!(ended);
        assert_eq!(
            serde_json::to_value(all).unwrap(),
            json!([
                {
                    "channel": 1, "mac": "ac:1f:6b:8a:5f:c8", "address": "10.0.9.7", "prefixLength": 24,
                    "addressSource": "dhcp", "gateway": "10.0.9.1", "vlan": 100,
                    "ipv6Addresses": ["fd00::ae1f:6bff:fe8a:5fc8"],
                },
                { "channel": 8, "mac": "ac:1f:6b:8a:5f:c9", "addressSource": "dhcp" },
            ])
        );
    }

    #[test]
    fn a_controller_that_refuses_every_channel_is_asked_for_each_once() {
        assert_eq!(Fake::new(&[]).says(), (vec![], 11, true));
    }

    #[test]
    fn a_controller_without_the_command_is_asked_once() {
        assert_eq!(Fake { refusal: 0xc1, ..Fake::new(&[]) }.says(), (vec![], 1, true));
    }

    #[test]
    fn a_channel_whose_configuration_is_refused_is_not_told() {
        let (all, requests, ended) = Fake::new(&[(&[0x06, 0x42, 1], LAN)]).says();
        assert_eq!((all, requests, ended), (vec![], 11 + 5, true));
    }

    #[test]
    fn silence_ends_the_conversation_and_what_was_said_counts() {
        let (whole, requests, _) = server().says();
        for silent_after in 0..requests {
            let (all, asked, ended) = Fake { silent_after, ..server() }.says();
            assert_eq!((asked, ended), (silent_after, false));
            assert!(all.len() <= whole.len());
            // The hardware address comes first, and alone is worth telling.
            assert_eq!(all.first().and_then(|c| c.mac).is_some(), silent_after >= 2, "{silent_after}");
        }
    }

    #[test]
    fn a_controller_that_claims_no_end_of_addresses_is_asked_for_a_few() {
        let mut fake = server();
        fake.responses.insert(vec![0x0c, 0x02, 1, 55, 0, 0], vec![0, 0x11, 255, 255, 3]);
        let (_, bounded, _) = fake.says();
        let (_, usual, _) = server().says();
        assert_eq!(bounded, usual - 3 + 16);
    }
}
