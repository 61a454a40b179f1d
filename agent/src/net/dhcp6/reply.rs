//! Reads a server's message, trusting nothing in it.
//!
//! Not by the codec: it subtracts from lengths that a server chose without looking, nests as deep as the sender
//! likes, and stops at the first option it cannot read.

use std::net::Ipv6Addr;

use crate::net::ipv6::names;

/// Most addresses taken of each list.
const MAX: usize = 4;
/// Longest identifier of a server, in bytes (RFC 8415, section 11.1).
const MAX_DUID: usize = 130;

/// What kind of answer it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// What a server would give.
    Advertise,
    /// What it gave.
    Reply,
}

/// What a server thinks of a question (RFC 8415, section 21.13).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Status {
    /// All is well.
    #[default]
    Success,
    /// It has no address.
    NoAddress,
    /// It knows nothing of our addresses.
    NoBinding,
    /// Our addresses are not of this link.
    NotOnLink,
    /// Something else is wrong.
    Failed,
}

/// One leased address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leased {
    /// The address.
    pub address: Ipv6Addr,
    /// How long it should be used, in seconds.
    pub preferred: u32,
    /// How long it may be used, in seconds; never 0.
    pub valid: u32,
}

/// A server's message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// What kind of answer.
    pub kind: Kind,
    /// Which question it is for.
    pub xid: u32,
    /// Who is meant, by DUID.
    pub client: Vec<u8>,
    /// Who says it, by DUID.
    pub server: Vec<u8>,
    /// How much the server wants to be used.
    pub preference: u8,
    /// What it thinks of the message as a whole.
    pub status: Status,
    /// What it thinks of our association.
    pub ia_status: Status,
    /// When to renew, in seconds; 0 = as we like.
    pub t1: u32,
    /// When to ask others, in seconds; 0 = as we like.
    pub t2: u32,
    /// Addresses of our association.
    pub addresses: Vec<Leased>,
    /// Name servers.
    pub dns: Vec<Ipv6Addr>,
    /// Domains to complete short names with.
    pub search: Vec<String>,
    /// Time servers.
    pub ntp: Vec<Ipv6Addr>,
}

/// The answer in a UDP payload, as far as it concerns association `iaid`; [`None`] when it is none.
pub fn read(payload: &[u8], iaid: u32) -> Option<Answer> {
    let (&[kind, a, b, c], options) = payload.split_first_chunk()?;
    let kind = match kind {
        2 => Kind::Advertise,
        7 => Kind::Reply,
        _ => return None,
    };
    let mut answer = Answer {
        kind,
        xid: u32::from_be_bytes([0, a, b, c]),
        client: Vec::new(),
        server: Vec::new(),
        preference: 0,
        status: Status::Success,
        ia_status: Status::Success,
        t1: 0,
        t2: 0,
        addresses: Vec::new(),
        dns: Vec::new(),
        search: Vec::new(),
        ntp: Vec::new(),
    };
    for (code, value) in Options(options) {
        match code {
            1 => answer.client = value.to_vec(),
            2 if value.len() <= MAX_DUID => answer.server = value.to_vec(),
            3 if value.get(..4) == Some(iaid.to_be_bytes().as_slice()) => answer.take_association(value),
            7 => answer.preference = value.first().copied().unwrap_or(0),
            13 => answer.status = status(value),
            23 => extend(&mut answer.dns, addresses(value)),
            24 => answer.search = names::read(value),
            31 => extend(&mut answer.ntp, addresses(value)),
            56 => {
                // Sub-option 1 is an address (RFC 5908); names and multicast are left out.
                let found = Options(value).filter(|(code, _)| *code == 1).flat_map(|(_, v)| addresses(v));
                extend(&mut answer.ntp, found);
            }
            _ => {}
        }
    }
    Some(answer)
}

impl Answer {
    fn take_association(&mut self, value: &[u8]) {
        (self.t1, self.t2) = (be32(value, 4).unwrap_or(0), be32(value, 8).unwrap_or(0));
        for (code, inner) in Options(value.get(12..).unwrap_or_default()) {
            match code {
                5 if self.addresses.len() < MAX => self.addresses.extend(leased(inner)),
                13 => self.ia_status = status(inner),
                _ => {}
            }
        }
    }
}

/// An address that may be used; one whose time is over is a refusal of it, as is one with a status of failure.
fn leased(value: &[u8]) -> Option<Leased> {
    let address = Ipv6Addr::from(<[u8; 16]>::try_from(value.get(..16)?).ok()?);
    let (preferred, valid) = (be32(value, 16)?, be32(value, 20)?);
    let refused =
        Options(value.get(24..)?).any(|(code, inner)| code == 13 && status(inner) != Status::Success);
    let usable = is_host(address) && !address.is_unicast_link_local();
    (valid > 0 && preferred <= valid && usable && !refused).then_some(Leased { address, preferred, valid })
}

fn is_host(ip: Ipv6Addr) -> bool {
    !ip.is_unspecified() && !ip.is_multicast() && !ip.is_loopback()
}

fn addresses(value: &[u8]) -> impl Iterator<Item = Ipv6Addr> {
    value
        .chunks_exact(16)
        .filter_map(|bytes| Some(Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?)))
        .filter(|ip| is_host(*ip))
}

fn extend(list: &mut Vec<Ipv6Addr>, more: impl Iterator<Item = Ipv6Addr>) {
    for ip in more {
        if list.len() < MAX && !list.contains(&ip) {
            list.push(ip);
        }
    }
}

fn status(value: &[u8]) -> Status {
    match value {
        [0, 0, ..] => Status::Success,
        [0, 2, ..] => Status::NoAddress,
        [0, 3, ..] => Status::NoBinding,
        [0, 4, ..] => Status::NotOnLink,
        _ => Status::Failed,
    }
}

fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

/// Options one after the other, up to the first that does not fit.
struct Options<'a>(&'a [u8]);

impl<'a> Iterator for Options<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (&[a, b, c, d], rest) = self.0.split_first_chunk()?;
        let (value, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes([c, d])))?;
        self.0 = rest;
        Some((u16::from_be_bytes([a, b]), value))
    }
}
