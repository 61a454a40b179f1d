//! `farrier.bond`: several links as one.

use std::fmt;
use std::str::FromStr;

use super::super::mac::MacAddress;

/// Most members; more would not fit a kernel command line beside the rest.
const MAX_MEMBERS: usize = 8;

/// How the links of a bond work together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BondMode {
    /// Link aggregation by LACP (IEEE 802.3ad, now 802.1AX); the switch takes part.
    Lacp,
    /// One link at a time; the switch knows nothing of it.
    ActiveBackup,
}

impl BondMode {
    /// As the kernel's bonding driver spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Lacp => "802.3ad",
            Self::ActiveBackup => "active-backup",
        }
    }
}

/// `802.3ad` or `active-backup`, with `:` and a comma list of MAC addresses where not all links are meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bond {
    /// How its links work together.
    pub mode: BondMode,
    /// Its links, each once; none means every link that has a carrier.
    pub members: Vec<MacAddress>,
}

/// Why a text is not a [`Bond`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{found:?} is not a bond: {reason}; expected 802.3ad or active-backup, for example 802.3ad:52:54:00:00:00:01,52:54:00:00:00:02"
)]
pub struct BondError {
    /// What was given, cut to a printable length.
    pub found: String,
    /// Which part is wrong.
    pub reason: &'static str,
}

impl FromStr for Bond {
    type Err = BondError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = |reason| BondError { found: text.chars().take(80).collect(), reason };
        let (mode, list) = match text.split_once(':') {
            Some((mode, list)) => (mode, Some(list)),
            None => (text, None),
        };
        let mode = match mode {
            "802.3ad" => BondMode::Lacp,
            "active-backup" => BondMode::ActiveBackup,
            _ => return Err(error("unknown mode")),
        };
        let mut members: Vec<MacAddress> = Vec::new();
        for mac in list.into_iter().flat_map(|list| list.split(',')) {
            let mac = mac.parse().map_err(|_| error("a member is not a MAC address"))?;
            if members.contains(&mac) {
                return Err(error("a member is given twice"));
            }
            if members.len() == MAX_MEMBERS {
                return Err(error("more than 8 members"));
            }
            members.push(mac);
        }
        Ok(Self { mode, members })
    }
}

impl fmt::Display for Bond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.mode.as_str())?;
        for (n, mac) in self.members.iter().enumerate() {
            write!(f, "{}{mac}", if n == 0 { ':' } else { ',' })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_with_and_without_members_read_as_they_are_written() {
        for (text, mode, members) in [
            ("802.3ad", BondMode::Lacp, 0),
            ("active-backup", BondMode::ActiveBackup, 0),
            ("802.3ad:52:54:00:00:00:01", BondMode::Lacp, 1),
            ("active-backup:52:54:00:00:00:01,52:54:00:00:00:02", BondMode::ActiveBackup, 2),
        ] {
            let bond: Bond = text.parse().unwrap();
            assert_eq!((bond.mode, bond.members.len()), (mode, members));
            assert_eq!(bond.to_string(), text);
        }
    }

    #[test]
    fn what_is_no_bond_is_refused_with_its_reason() {
        let many = format!(
            "802.3ad:{}",
            (0..9).map(|n| format!("52:54:00:00:00:0{n}")).collect::<Vec<_>>().join(",")
        );
        for (text, reason) in [
            ("", "unknown mode"),
            ("lacp", "unknown mode"),
            ("802.3AD", "unknown mode"),
            ("802.3ad:", "MAC address"),
            ("802.3ad:eth0", "MAC address"),
            ("802.3ad:52:54:00:00:00:01,", "MAC address"),
            ("802.3ad:52:54:00:00:00:01,52:54:00:00:00:01", "twice"),
            (many.as_str(), "more than 8"),
        ] {
            assert!(text.parse::<Bond>().unwrap_err().to_string().contains(reason), "{text}");
        }
    }
}
