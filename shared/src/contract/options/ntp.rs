//! `farrier.ntp`: where the machine learns the time.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// Most servers; the first that answers is believed, more only lengthen the wait.
const MAX_SERVERS: usize = 4;
/// Longest host name (RFC 1035, section 2.3.4), in bytes.
const MAX_NAME: usize = 253;
/// Longest part of a host name, in bytes.
const MAX_LABEL: usize = 63;

/// A time server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NtpServer {
    /// By address.
    Address(IpAddr),
    /// By name, in lower case.
    Name(String),
}

/// One to four time servers, separated by commas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NtpServers(Vec<NtpServer>);

/// Why a text is not a list of [`NtpServers`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{found:?} is no list of time servers: expected one to four host names or addresses, separated by commas"
)]
pub struct NtpServersError {
    /// What was given, cut to a printable length.
    pub found: String,
}

impl NtpServers {
    /// The servers in order of preference.
    pub fn iter(&self) -> impl Iterator<Item = &NtpServer> {
        self.0.iter()
    }
}

fn is_host_name(text: &str) -> bool {
    let label = |l: &str| {
        (1..=MAX_LABEL).contains(&l.len())
            && l.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
            && !l.starts_with('-')
            && !l.ends_with('-')
    };
    // A name of digits and dots alone is an address with a mistake in it.
    text.len() <= MAX_NAME && text.split('.').all(label) && text.bytes().any(|b| b.is_ascii_lowercase())
}

impl FromStr for NtpServer {
    type Err = NtpServersError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Ok(ip) = text.parse::<IpAddr>() {
            return Ok(Self::Address(ip));
        }
        let name = text.to_ascii_lowercase();
        if is_host_name(&name) {
            Ok(Self::Name(name))
        } else {
            Err(NtpServersError { found: text.chars().take(64).collect() })
        }
    }
}

impl FromStr for NtpServers {
    type Err = NtpServersError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || NtpServersError { found: text.chars().take(80).collect() };
        let servers: Vec<NtpServer> =
            text.split(',').map(str::parse).collect::<Result<_, _>>().map_err(|_| error())?;
        if servers.len() > MAX_SERVERS { Err(error()) } else { Ok(Self(servers)) }
    }
}

impl fmt::Display for NtpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(ip) => ip.fmt(f),
            Self::Name(name) => f.write_str(name),
        }
    }
}

impl fmt::Display for NtpServers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, server) in self.0.iter().enumerate() {
            if n > 0 {
                f.write_str(",")?;
            }
            server.fmt(f)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_addresses_of_both_families_read_as_they_are_written() {
        for text in ["10.0.0.1", "fd00::1", "ntp.example", "10.0.0.1,ntp-2.example,fd00::1"] {
            assert_eq!(text.parse::<NtpServers>().unwrap().to_string(), text);
        }
        assert_eq!("NTP.Example".parse::<NtpServers>().unwrap().to_string(), "ntp.example");
    }

    #[test]
    fn what_is_no_host_is_refused() {
        let long = "a".repeat(64);
        for text in [
            "",
            ",",
            "a,",
            "10.0.0",
            "10.0.0.300",
            "a b",
            "a_b",
            "-a",
            "a..b",
            "a/b",
            "a:123",
            "a,b,c,d,e",
            &long,
        ] {
            assert!(text.parse::<NtpServers>().is_err(), "{text}");
        }
    }
}
