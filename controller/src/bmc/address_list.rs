//! The list of addresses a Secret's credentials may go to.
//!
//! Entries are separated by commas or white space: an address, a network, a host name, or `*.suffix`. One bad
//! entry voids the list, since an operator who mistyped one cannot know what the rest allows.

use std::net::{IpAddr, Ipv6Addr};

use url::Host;

/// A parsed list; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AddressList(Vec<Entry>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Entry {
    Address(IpAddr),
    Network {
        base: IpAddr,
        bits: u8,
    },
    Name(String),
    /// With its leading dot.
    Suffix(String),
}

/// Why a text is no list. Names the entry by position only: annotations may hold what should not be logged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum AddressListError {
    #[error("it lists nothing")]
    Empty,
    #[error("entry {position} {problem}")]
    Entry { position: usize, problem: &'static str },
}

impl AddressList {
    pub(super) fn parse(text: &str) -> Result<Self, AddressListError> {
        let entries = text
            .split(|c: char| c == ',' || c.is_whitespace())
            .filter(|entry| !entry.is_empty())
            .enumerate()
            .map(|(at, entry)| {
                parse_entry(entry).map_err(|problem| AddressListError::Entry { position: at + 1, problem })
            })
            .collect::<Result<Vec<_>, _>>()?;
        if entries.is_empty() { Err(AddressListError::Empty) } else { Ok(Self(entries)) }
    }

    /// Whether the host is listed. Addresses match only addresses and networks, names only names.
    pub(super) fn allows(&self, host: &Host<&str>) -> bool {
        let ip = match host {
            Host::Ipv4(v4) => IpAddr::V4(*v4),
            Host::Ipv6(v6) => unmapped(IpAddr::V6(*v6)),
            Host::Domain(name) => {
                let name = name.to_ascii_lowercase();
                return self.0.iter().any(|entry| match entry {
                    Entry::Name(listed) => *listed == name,
                    Entry::Suffix(dotted) => {
                        name.strip_suffix(dotted.as_str()).is_some_and(|rest| !rest.is_empty())
                    }
                    Entry::Address(_) | Entry::Network { .. } => false,
                });
            }
        };
        self.0.iter().any(|entry| match entry {
            Entry::Address(listed) => *listed == ip,
            Entry::Network { base, bits } => contains(*base, *bits, ip),
            Entry::Name(_) | Entry::Suffix(_) => false,
        })
    }
}

fn parse_entry(entry: &str) -> Result<Entry, &'static str> {
    if let Some((base, bits)) = entry.split_once('/') {
        return parse_network(base, bits);
    }
    if let Some(suffix) = entry.strip_prefix("*.") {
        let suffix = suffix.to_ascii_lowercase();
        if !is_dns_name(&suffix) {
            return Err("is not `*.` and a host name");
        }
        // Anybody can get a name under a public suffix, so it authorises nobody in particular.
        if psl::suffix_str(&suffix).is_none_or(|public| public == suffix) {
            return Err("is a wildcard over a public suffix; name a domain of your own");
        }
        return Ok(Entry::Suffix(format!(".{suffix}")));
    }
    if let Ok(ip) = entry.parse::<IpAddr>() {
        return Ok(Entry::Address(unmapped(ip)));
    }
    if is_dns_name(&entry.to_ascii_lowercase()) {
        return Ok(Entry::Name(entry.to_ascii_lowercase()));
    }
    Err("is neither an address, a network, a host name nor `*.suffix`")
}

fn parse_network(base: &str, bits: &str) -> Result<Entry, &'static str> {
    let base: IpAddr = base.parse().map_err(|_| "is not a network such as 192.0.2.0/24")?;
    let digits = !bits.is_empty() && bits.bytes().all(|b| b.is_ascii_digit());
    let bits: u8 =
        bits.parse().ok().filter(|_| digits).ok_or("has a prefix length that is not a small number")?;
    match base {
        IpAddr::V4(_) if !(8..=32).contains(&bits) => Err("is a network wider than /8 or narrower than /32"),
        IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some() => {
            Err("is a network of IPv4-mapped addresses; write it as IPv4")
        }
        IpAddr::V6(_) if !(32..=128).contains(&bits) => {
            Err("is a network wider than /32 or narrower than /128")
        }
        _ => Ok(Entry::Network { base, bits }),
    }
}

fn contains(base: IpAddr, bits: u8, ip: IpAddr) -> bool {
    match (base, ip) {
        (IpAddr::V4(base), IpAddr::V4(ip)) => {
            let shift = 32 - u32::from(bits.min(32));
            u32::from(base).checked_shr(shift).unwrap_or(0) == u32::from(ip).checked_shr(shift).unwrap_or(0)
        }
        (IpAddr::V6(base), IpAddr::V6(ip)) => {
            let shift = 128 - u32::from(bits.min(128));
            u128::from(base).checked_shr(shift).unwrap_or(0) == u128::from(ip).checked_shr(shift).unwrap_or(0)
        }
        _ => false,
    }
}

fn unmapped(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V6(v6) => Ipv6Addr::to_ipv4_mapped(&v6).map_or(ip, IpAddr::V4),
        IpAddr::V4(_) => ip,
    }
}

/// Whether a lower-case text is a DNS-1123 subdomain.
pub(super) fn is_dns_name(text: &str) -> bool {
    text.parse::<farrier_shared::contract::Name>().is_ok() && text.split('.').all(|label| label.len() <= 63)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(list: &str, host: &str) -> bool {
        let url = url::Url::parse(&format!("https://{host}/")).unwrap();
        AddressList::parse(list).unwrap().allows(&url.host().unwrap())
    }

    #[test]
    fn hosts_are_matched_by_kind() {
        for (list, host, expected) in [
            ("192.0.2.7", "192.0.2.7", true),
            ("192.0.2.7", "192.0.2.8", false),
            ("192.0.2.0/24", "192.0.2.200", true),
            ("192.0.2.9/24", "192.0.2.200", true),
            ("192.0.2.0/24", "192.0.3.1", false),
            ("10.0.0.0/8", "10.255.0.1", true),
            ("::ffff:192.0.2.7", "192.0.2.7", true),
            ("192.0.2.7", "[::ffff:192.0.2.7]", true),
            ("192.0.2.0/24", "[::ffff:192.0.2.7]", true),
            ("2001:db8::/32", "[2001:db8::1]", true),
            ("2001:db8::/32", "[2001:db9::1]", false),
            ("2001:db8::1/128", "[2001:db8::1]", true),
            ("BMC1.Lab.Example.com", "bmc1.lab.example.com", true),
            ("bmc1.lab.example.com", "bmc2.lab.example.com", false),
            ("*.lab.example.com", "bmc1.lab.example.com", true),
            ("*.lab.example.com", "a.b.lab.example.com", true),
            ("*.lab.example.com", "lab.example.com", false),
            ("*.lab.example.com", "evillab.example.com", false),
            ("*.bmc.internal", "one.bmc.internal", true),
            ("192.0.2.1, bmc1.lab\n192.0.2.2", "192.0.2.2", true),
            ("192.0.2.1, bmc1.lab\n192.0.2.2", "bmc1.lab", true),
            ("bmc1.lab", "192.0.2.1", false),
        ] {
            assert_eq!(allows(list, host), expected, "{list:?} and {host:?}");
        }
    }

    #[test]
    fn one_bad_entry_voids_the_list_and_is_named_by_position_only() {
        for bad in [
            "0.0.0.0/0",
            "10.0.0.0/7",
            "192.0.2.0/33",
            "192.0.2.0/",
            "192.0.2.0/+24",
            "::/0",
            "2001::/31",
            "::ffff:192.0.2.0/120",
            "*",
            "*.com",
            "*.co.uk",
            "*.lab",
            "*.*.example.com",
            "-bmc",
            "bmc_1",
            "https://bmc1",
            "bmc1:443",
        ] {
            let error = AddressList::parse(&format!("192.0.2.1 {bad} bmc1")).unwrap_err();
            assert!(matches!(error, AddressListError::Entry { position: 2, .. }), "{bad:?}: {error}");
            assert!(!error.to_string().contains(bad) || bad == "*", "{bad:?}: {error}");
        }
        assert_eq!(AddressList::parse(" ,, "), Err(AddressListError::Empty));
    }
}
