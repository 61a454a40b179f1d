//! The names and addresses the serving certificate must answer to.

use std::collections::BTreeSet;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use farrier_shared::contract::WebUrl;

/// One name of the serving certificate.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ServingName {
    /// A DNS name, lower-case.
    Dns(String),
    /// An address, compared as such by verifiers.
    Ip(IpAddr),
}

/// Why a text is not a [`ServingName`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{found:?} is neither a DNS name nor an IP address; expected for example boot.example.org or 10.0.0.2"
)]
pub struct ServingNameError {
    /// What was given, cut to a printable length.
    pub found: String,
}

impl FromStr for ServingName {
    type Err = ServingNameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bare = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')).unwrap_or(text);
        if let Ok(ip) = bare.parse::<IpAddr>() {
            return Ok(Self::Ip(ip.to_canonical()));
        }
        let lower = text.trim_end_matches('.').to_ascii_lowercase();
        let label_ok = |label: &str| {
            (1..=63).contains(&label.len())
                && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
                && !label.starts_with('-')
                && !label.ends_with('-')
        };
        if lower.len() <= 253 && lower.split('.').all(label_ok) {
            Ok(Self::Dns(lower))
        } else {
            Err(ServingNameError { found: text.chars().take(80).collect() })
        }
    }
}

impl fmt::Display for ServingName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dns(name) => f.write_str(name),
            Self::Ip(ip) => write!(f, "{ip}"),
        }
    }
}

/// Every name of the serving certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServingNames(BTreeSet<ServingName>);

impl ServingNames {
    /// The host of `url_base`, what the operator adds, the machine's own name where it is one, and loopback.
    pub fn collect(url_base: &WebUrl, extra: &[ServingName], hostname: Option<&str>) -> Self {
        let mut names: BTreeSet<ServingName> = extra.iter().cloned().collect();
        names.extend(url_base.to_url().host_str().and_then(|host| host.parse().ok()));
        names.extend(hostname.and_then(|name| name.parse().ok()));
        names.insert(ServingName::Dns("localhost".to_owned()));
        names.insert(ServingName::Ip(Ipv4Addr::LOCALHOST.into()));
        names.insert(ServingName::Ip(Ipv6Addr::LOCALHOST.into()));
        Self(names)
    }

    /// The names in order.
    pub fn iter(&self) -> impl Iterator<Item = &ServingName> {
        self.0.iter()
    }

    /// Whether every one of these is among `present`.
    pub fn covered_by(&self, present: &BTreeSet<ServingName>) -> bool {
        self.0.is_subset(present)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_literals_become_addresses_and_all_else_a_lower_case_name() {
        let table = [
            ("10.0.0.2", ServingName::Ip("10.0.0.2".parse().unwrap())),
            ("[fd00::1]", ServingName::Ip("fd00::1".parse().unwrap())),
            ("::ffff:10.0.0.2", ServingName::Ip("10.0.0.2".parse().unwrap())),
            ("Boot.Example.org.", ServingName::Dns("boot.example.org".to_owned())),
        ];
        for (text, expected) in table {
            assert_eq!(text.parse::<ServingName>().unwrap(), expected, "{text}");
        }
        for text in ["", "a b", "-x", "x-", "a..b", "https://x", &"a".repeat(64)] {
            assert!(text.parse::<ServingName>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn the_base_url_the_flags_the_hostname_and_loopback_are_all_covered() {
        let base: WebUrl = "https://192.0.2.7:8082".parse().unwrap();
        let extra = ["boot.lab".parse().unwrap()];
        let names = ServingNames::collect(&base, &extra, Some("ctl-1"));
        let shown: Vec<String> = names.iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["boot.lab", "ctl-1", "localhost", "127.0.0.1", "192.0.2.7", "::1"]);
    }
}
