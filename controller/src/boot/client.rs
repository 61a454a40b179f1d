//! Which client a request is from, when a proxy may stand between.

use std::net::{IpAddr, SocketAddr};

use axum::http::HeaderMap;

/// Networks of proxies whose `X-Forwarded-For` is believed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrustedProxies(Vec<(IpAddr, u8)>);

/// Why a list of proxies is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{found:?} is no proxy address: expected an IP address or network such as 10.0.0.1 or 10.0.0.0/24")]
pub struct TrustedProxyError {
    /// The entry, cut to a printable length.
    pub found: String,
}

impl std::str::FromStr for TrustedProxies {
    type Err = TrustedProxyError;

    /// A comma-separated list; a bare address is a network of one; an empty text trusts nobody.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let entry = |entry: &str| {
            let error = || TrustedProxyError { found: entry.chars().take(64).collect() };
            let (ip, bits) = entry.split_once('/').map_or((entry, None), |(ip, bits)| (ip, Some(bits)));
            let ip: IpAddr = ip.parse().map_err(|_| error())?;
            let most: u8 = if ip.is_ipv4() { 32 } else { 128 };
            let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
            let bits: u8 = match bits {
                None => most,
                Some(text) => text.parse().ok().filter(|_| digits(text)).ok_or_else(error)?,
            };
            // Peers are compared as IPv4 where they are that, so a network of mapped addresses would match nobody.
            match ip.to_canonical() {
                _ if bits > most => Err(error()),
                canonical if canonical == ip => Ok((ip, bits)),
                canonical => bits.checked_sub(96).map(|bits| (canonical, bits)).ok_or_else(error),
            }
        };
        text.split(',')
            .map(str::trim)
            .filter(|e| !e.is_empty())
            .map(entry)
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

impl TrustedProxies {
    /// Whether the address is one of theirs.
    pub fn contains(&self, ip: IpAddr) -> bool {
        let ip = ip.to_canonical();
        self.0.iter().any(|(network, bits)| match (network, ip) {
            (IpAddr::V4(n), IpAddr::V4(i)) => {
                same_prefix(u128::from(u32::from(*n)) << 96, u128::from(u32::from(i)) << 96, *bits)
            }
            (IpAddr::V6(n), IpAddr::V6(i)) => same_prefix(u128::from(*n), u128::from(i), *bits),
            _ => false,
        })
    }

    /// The client's address: that of the TCP peer, unless the peer is a trusted proxy; then the right-most
    /// forwarded address that is not itself a trusted proxy's.
    pub fn client(&self, peer: SocketAddr, headers: &HeaderMap) -> IpAddr {
        let peer = peer.ip().to_canonical();
        if !self.contains(peer) {
            return peer;
        }
        let forwarded: Vec<&str> = headers
            .get_all("x-forwarded-for")
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|line| line.split(','))
            .collect();
        forwarded
            .into_iter()
            .rev()
            .filter_map(|hop| hop.trim().parse::<IpAddr>().ok())
            .map(|ip| ip.to_canonical())
            .find(|ip| !self.contains(*ip))
            .unwrap_or(peer)
    }
}

fn same_prefix(a: u128, b: u128, bits: u8) -> bool {
    // A shift by the whole width is not defined; no bits means that everything matches.
    bits == 0 || (a ^ b) >> (128 - u32::from(bits)) == 0
}
