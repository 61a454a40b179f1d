//! The messages we send.

use std::net::Ipv6Addr;
use std::time::Duration;

use dhcproto::v6::{DhcpOption, IAAddr, IANA, Message, MessageType, ORO, OptionCode};
use dhcproto::{Encodable as _, encoder::Encoder};
use farrier_shared::contract::MacAddress;

/// What we ask for: name servers, domains, time servers in the new and in the old way.
const WANTED: [OptionCode; 4] = [
    OptionCode::DomainNameServers,
    OptionCode::DomainSearchList,
    OptionCode::NtpServer,
    OptionCode::SntpServers,
];

/// Who we are to servers: the link-layer address (RFC 8415, section 11.4), which firmware that boots from this
/// interface has too, and reservations are made for.
pub(super) fn duid(mac: MacAddress) -> Vec<u8> {
    [[0, 3, 0, 1].as_slice(), &mac.as_bytes()].concat()
}

/// The number of our one association: the same in every run, so that a server gives the same address.
pub(super) fn iaid(mac: MacAddress) -> u32 {
    let [_, _, a, b, c, d] = mac.as_bytes();
    u32::from_be_bytes([a, b, c, d])
}

/// One message of an exchange.
#[derive(Clone, Copy, Debug)]
pub(super) struct Question<'a> {
    pub(super) kind: MessageType,
    pub(super) mac: MacAddress,
    /// Ties answers to questions; 24 bits.
    pub(super) xid: u32,
    /// How long the exchange has been going on.
    pub(super) elapsed: Duration,
    /// Whom it is for, by DUID; none for everybody.
    pub(super) server: Option<&'a [u8]>,
    /// The addresses it is about; none for settings alone.
    pub(super) addresses: Option<&'a [Ipv6Addr]>,
}

impl Question<'_> {
    pub(super) fn encode(self) -> Vec<u8> {
        let [_, a, b, c] = self.xid.to_be_bytes();
        let mut message = Message::new_with_id(self.kind, [a, b, c]);
        let opts = message.opts_mut();
        opts.insert(DhcpOption::ClientId(duid(self.mac)));
        if let Some(server) = self.server {
            opts.insert(DhcpOption::ServerId(server.to_vec()));
        }
        // In hundredths of a second (RFC 8415, section 21.9).
        let hundredths = u16::try_from(self.elapsed.as_millis() / 10).unwrap_or(u16::MAX);
        opts.insert(DhcpOption::ElapsedTime(hundredths));
        // These ask for no settings (RFC 8415, sections 18.2.3 and 18.2.8).
        if !matches!(self.kind, MessageType::Confirm | MessageType::Decline) {
            opts.insert(DhcpOption::ORO(ORO { opts: WANTED.to_vec() }));
        }
        if let Some(addresses) = self.addresses {
            let addresses = addresses.iter().map(|addr| {
                // Zero times: the server knows best.
                let address = IAAddr {
                    addr: *addr,
                    preferred_life: 0,
                    valid_life: 0,
                    opts: dhcproto::v6::DhcpOptions::new(),
                };
                DhcpOption::IAAddr(address)
            });
            let opts = addresses.collect();
            message.opts_mut().insert(DhcpOption::IANA(IANA { id: iaid(self.mac), t1: 0, t2: 0, opts }));
        }
        let mut bytes = Vec::new();
        // Writing a message of our own making to memory cannot fail; an empty one would go unanswered.
        if message.encode(&mut Encoder::new(&mut bytes)).is_err() {
            tracing::error!("a DHCPv6 message could not be encoded");
        }
        bytes
    }
}
