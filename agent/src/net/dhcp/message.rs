//! The messages we send, and which of those we hear are ours.

use std::net::Ipv4Addr;
use std::time::Duration;

use dhcproto::v4::{DhcpOption, Flags, Message, MessageType, Opcode, OptionCode};
use dhcproto::{Encodable as _, encoder::Encoder};
use farrier_shared::contract::MacAddress;

/// Largest answer we take: what fits an Ethernet frame after IP and UDP headers.
const MAX_SIZE: u16 = 1472;
/// BOOTP relays and old servers drop messages shorter than this (RFC 951).
const MIN_LEN: usize = 300;
/// Names the software to the server, which may choose options by it.
const VENDOR_CLASS: &[u8] = b"farrier-agent";
/// What we ask for: mask, routers, DNS, domain, MTU, NTP, lease, T1, T2, search list, classless routes.
/// 121 stands before 3, as RFC 3442 wants.
const WANTED: [OptionCode; 11] = [
    OptionCode::SubnetMask,
    OptionCode::ClasslessStaticRoute,
    OptionCode::Router,
    OptionCode::DomainNameServer,
    OptionCode::DomainName,
    OptionCode::InterfaceMtu,
    OptionCode::NtpServers,
    OptionCode::AddressLeaseTime,
    OptionCode::Renewal,
    OptionCode::Rebinding,
    OptionCode::DomainSearch,
];

/// What every message of one exchange has in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct Envelope {
    /// Our address on the wire.
    pub(super) mac: MacAddress,
    /// Ties answers to questions.
    pub(super) xid: u32,
    /// How long the exchange has been going on; relays use it to prefer the neglected.
    pub(super) elapsed: Duration,
    /// Ask for the answer by broadcast: some relays cannot reach a host that has no address yet.
    pub(super) broadcast: bool,
}

impl Envelope {
    pub(super) fn discover(self) -> Vec<u8> {
        self.encode(MessageType::Discover, Ipv4Addr::UNSPECIFIED, &[])
    }

    /// Takes up an offer.
    pub(super) fn request(self, offered: Ipv4Addr, server: Ipv4Addr) -> Vec<u8> {
        let own = [DhcpOption::RequestedIpAddress(offered), DhcpOption::ServerIdentifier(server)];
        self.encode(MessageType::Request, Ipv4Addr::UNSPECIFIED, &own)
    }

    /// Extends a lease; names neither server nor requested address (RFC 2131, table 4).
    pub(super) fn renew(self, address: Ipv4Addr) -> Vec<u8> {
        self.encode(MessageType::Request, address, &[])
    }

    /// Asks whether an address still holds on the link as it is now. As after a restart, without the address as our own:
    /// servers pass over those that say to have one of another network, instead of refusing it (RFC 2131,
    /// section 4.3.2).
    pub(super) fn confirm(self, address: Ipv4Addr) -> Vec<u8> {
        let own = [DhcpOption::RequestedIpAddress(address)];
        self.encode(MessageType::Request, Ipv4Addr::UNSPECIFIED, &own)
    }

    /// Gives back an address that another machine has; asks for nothing (RFC 2131, table 5).
    pub(super) fn decline(self, address: Ipv4Addr, server: Ipv4Addr) -> Vec<u8> {
        let own = [DhcpOption::RequestedIpAddress(address), DhcpOption::ServerIdentifier(server)];
        self.encode(MessageType::Decline, Ipv4Addr::UNSPECIFIED, &own)
    }

    fn encode(self, kind: MessageType, client: Ipv4Addr, own: &[DhcpOption]) -> Vec<u8> {
        let none = Ipv4Addr::UNSPECIFIED;
        let hardware = self.mac.as_bytes();
        let mut message = Message::new_with_id(self.xid, client, none, none, none, &hardware);
        message.set_secs(u16::try_from(self.elapsed.as_secs()).unwrap_or(u16::MAX));
        if self.broadcast {
            message.set_flags(Flags::default().set_broadcast());
        }
        let opts = message.opts_mut();
        opts.insert(DhcpOption::MessageType(kind));
        // Hardware type 1 and the address: what firmware sends too, so the server keeps one lease for both.
        opts.insert(DhcpOption::ClientIdentifier([&[1], hardware.as_slice()].concat()));
        if kind != MessageType::Decline {
            opts.insert(DhcpOption::MaxMessageSize(MAX_SIZE));
            opts.insert(DhcpOption::ClassIdentifier(VENDOR_CLASS.to_vec()));
            opts.insert(DhcpOption::ParameterRequestList(WANTED.to_vec()));
        }
        for option in own {
            opts.insert(option.clone());
        }
        let mut bytes = Vec::with_capacity(MIN_LEN);
        // Writing a message of our own making to memory cannot fail; an empty one would go unanswered.
        if message.encode(&mut Encoder::new(&mut bytes)).is_err() {
            tracing::error!("a DHCP message could not be encoded");
        }
        if bytes.len() < MIN_LEN {
            bytes.resize(MIN_LEN, 0);
        }
        bytes
    }
}

/// Whether a message answers this exchange: a reply, our transaction, our address.
pub(super) fn is_ours(message: &Message, xid: u32, mac: MacAddress) -> bool {
    message.opcode() == Opcode::BootReply && message.xid() == xid && message.chaddr() == mac.as_bytes()
}
