//! A static IPv4 configuration in the kernel's `ip=` manner: `<ip>::[<gateway>]:<mask>[:<dns>]`.

use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The value of `beskar7.ip`. Keeps the text as given and its parsed parts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct StaticIp {
    text: String,
    /// Address of the interface.
    pub address: Ipv4Addr,
    /// Prefix length, 0..=32.
    pub prefix_len: u8,
    /// Default gateway, if any.
    pub gateway: Option<Ipv4Addr>,
    /// Name server, if any.
    pub dns: Option<Ipv4Addr>,
}

/// Why a text is not a [`StaticIp`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{found:?} is not a static address: {reason}; expected <ip>::[<gateway>]:<mask>[:<dns>], for example 10.0.0.5::10.0.0.1:24:10.0.0.1"
)]
pub struct StaticIpError {
    /// What was given, cut to a printable length.
    pub found: String,
    /// Which part is wrong.
    pub reason: &'static str,
}

fn prefix_of(mask: &str) -> Option<u8> {
    if let Ok(dotted) = mask.parse::<Ipv4Addr>() {
        let bits = u32::from(dotted);
        let ones = bits.leading_ones();
        // A mask with a hole in it is a typing error, not a network.
        return (bits.count_ones() == ones).then(|| u8::try_from(ones).ok()).flatten();
    }
    let digits_only = (1..=2).contains(&mask.len()) && mask.bytes().all(|b| b.is_ascii_digit());
    mask.parse::<u8>().ok().filter(|n| digits_only && *n <= 32)
}

impl FromStr for StaticIp {
    type Err = StaticIpError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = |reason| StaticIpError { found: text.chars().take(80).collect(), reason };
        let fields: Vec<&str> = text.split(':').collect();
        let (address, gateway, mask, dns) = match fields.as_slice() {
            [address, "", gateway, mask] => (*address, *gateway, *mask, None),
            [address, "", gateway, mask, dns] => (*address, *gateway, *mask, Some(*dns)),
            _ => return Err(error("wrong number of fields")),
        };
        Ok(Self {
            text: text.to_owned(),
            address: address.parse().map_err(|_| error("address is not IPv4"))?,
            prefix_len: prefix_of(mask).ok_or_else(|| error("mask is neither 0 to 32 nor a dotted mask"))?,
            gateway: match gateway {
                "" => None,
                given => Some(given.parse().map_err(|_| error("gateway is not IPv4"))?),
            },
            dns: dns.map(str::parse).transpose().map_err(|_| error("name server is not IPv4"))?,
        })
    }
}

impl TryFrom<String> for StaticIp {
    type Error = StaticIpError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<StaticIp> for String {
    fn from(ip: StaticIp) -> Self {
        ip.text
    }
}

impl fmt::Display for StaticIp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
