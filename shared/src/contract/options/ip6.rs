//! `farrier.ip6`: how the machine comes by an IPv6 address.

use std::fmt;
use std::net::Ipv6Addr;
use std::str::FromStr;

/// `auto`, `dhcp`, `off`, or a static `ADDR/LEN[,GATEWAY[,DNS]]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ip6 {
    /// What routers advertise, DHCPv6 where they say so.
    #[default]
    Auto,
    /// DHCPv6 whatever routers say; the gateway still comes from them, as DHCPv6 has none.
    Dhcp,
    /// No IPv6.
    Off,
    /// By hand; routers are not heard.
    Static(StaticIp6),
}

/// An IPv6 address by hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StaticIp6 {
    /// Address of the interface; unicast, not link-local.
    pub address: Ipv6Addr,
    /// Prefix length, 1..=128.
    pub prefix_len: u8,
    /// Default gateway, if any; may be link-local.
    pub gateway: Option<Ipv6Addr>,
    /// Name server, if any.
    pub dns: Option<Ipv6Addr>,
}

/// Why a text is not an [`Ip6`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{found:?} is no IPv6 setting: {reason}; expected auto, dhcp, off or ADDR/LEN[,GATEWAY[,DNS]], for example 2001:db8::5/64,fe80::1,2001:db8::53"
)]
pub struct Ip6Error {
    /// What was given, cut to a printable length.
    pub found: String,
    /// Which part is wrong.
    pub reason: &'static str,
}

/// Whether an address can be one machine's.
fn is_unicast(ip: Ipv6Addr) -> bool {
    !ip.is_unspecified() && !ip.is_loopback() && !ip.is_multicast() && ip.to_ipv4_mapped().is_none()
}

impl FromStr for Ip6 {
    type Err = Ip6Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = |reason| Ip6Error { found: text.chars().take(130).collect(), reason };
        match text {
            "auto" => return Ok(Self::Auto),
            "dhcp" => return Ok(Self::Dhcp),
            "off" => return Ok(Self::Off),
            _ => {}
        }
        let unicast = |field: &str, reason| {
            field.parse().ok().filter(|ip| is_unicast(*ip)).ok_or_else(|| error(reason)).map(Some)
        };
        let mut fields = text.split(',');
        let (address, length) =
            fields.next().and_then(|f| f.split_once('/')).ok_or_else(|| error("no prefix length"))?;
        let address: Ipv6Addr = address.parse().map_err(|_| error("the address is not IPv6"))?;
        if !is_unicast(address) || address.is_unicast_link_local() {
            return Err(error("the address cannot be an interface's"));
        }
        let prefix_len: u8 = length
            .parse()
            .ok()
            .filter(|n| length.bytes().all(|b| b.is_ascii_digit()) && (1..=128).contains(n))
            .ok_or_else(|| error("the prefix length is not 1 to 128"))?;
        let gateway = match fields.next() {
            None | Some("") => None,
            Some(field) => unicast(field, "the gateway is no unicast IPv6 address")?,
        };
        let dns = match fields.next() {
            None => None,
            Some(field) => unicast(field, "the name server is no unicast IPv6 address")?,
        };
        if fields.next().is_some() {
            return Err(error("too many fields"));
        }
        Ok(Self::Static(StaticIp6 { address, prefix_len, gateway, dns }))
    }
}

impl fmt::Display for Ip6 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Dhcp => f.write_str("dhcp"),
            Self::Off => f.write_str("off"),
            Self::Static(ip) => {
                write!(f, "{}/{}", ip.address, ip.prefix_len)?;
                match (ip.gateway, ip.dns) {
                    (None, None) => Ok(()),
                    (Some(gateway), None) => write!(f, ",{gateway}"),
                    (None, Some(dns)) => write!(f, ",,{dns}"),
                    (Some(gateway), Some(dns)) => write!(f, ",{gateway},{dns}"),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_reads_as_it_is_written() {
        for text in [
            "auto",
            "dhcp",
            "off",
            "2001:db8::5/64",
            "2001:db8::5/64,fe80::1",
            "fd00::5/128,fd00::1,fd00::53",
            "2001:db8::5/64,,2001:db8::53",
        ] {
            assert_eq!(text.parse::<Ip6>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_no_interface_can_have_is_refused() {
        for text in [
            "",
            "AUTO",
            "2001:db8::5",
            "2001:db8::5/",
            "2001:db8::5/0",
            "2001:db8::5/129",
            "2001:db8::5/+4",
            "10.0.0.1/24",
            "::/64",
            "::1/128",
            "ff02::1/64",
            "fe80::1/64",
            "::ffff:10.0.0.1/96",
            "2001:db8::5/64,10.0.0.1",
            "2001:db8::5/64,ff02::2",
            "2001:db8::5/64,fe80::1,",
            "2001:db8::5/64,fe80::1,fd00::53,fd00::54",
        ] {
            assert!(text.parse::<Ip6>().is_err(), "{text}");
        }
    }
}
