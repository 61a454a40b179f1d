//! `farrier.vlan`: the VLAN the machine's port carries tagged.

use std::fmt;
use std::str::FromStr;

/// A VLAN id, 1..=4094: 0 means "no VLAN" and 4095 is reserved (IEEE 802.1Q).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VlanId(u16);

/// Why a text is not a [`VlanId`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{found:?} is not a VLAN id: expected a number from 1 to 4094")]
pub struct VlanIdError {
    /// What was given, cut to a printable length.
    pub found: String,
}

impl VlanId {
    /// The number, 1..=4094.
    pub fn get(self) -> u16 {
        self.0
    }
}

impl FromStr for VlanId {
    type Err = VlanIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse()
            .ok()
            .filter(|id| text.bytes().all(|b| b.is_ascii_digit()) && (1..=4094).contains(id))
            .map(Self)
            .ok_or_else(|| VlanIdError { found: text.chars().take(64).collect() })
    }
}

impl fmt::Display for VlanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_real_vlans_are_taken_and_others_are_not() {
        for text in ["1", "100", "4094"] {
            assert_eq!(text.parse::<VlanId>().unwrap().to_string(), text);
        }
        for text in ["", "0", "4095", "65537", "-1", "+5", "1.5", "eth0.5", " 5"] {
            assert!(text.parse::<VlanId>().is_err(), "{text}");
        }
    }
}
