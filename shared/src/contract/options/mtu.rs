//! `farrier.mtu`: the largest packet the machine's network carries.

use std::fmt;
use std::str::FromStr;

/// An MTU in bytes, 576..=9216: what IPv4 must carry whole (RFC 791), up to what data-centre switches call jumbo.
/// IPv6 needs 1280 (RFC 8200, section 5); with less the kernel runs none on the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mtu(u16);

/// Why a text is not an [`Mtu`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{found:?} is not an MTU: expected a number of bytes from 576 to 9216")]
pub struct MtuError {
    /// What was given, cut to a printable length.
    pub found: String,
}

impl Mtu {
    /// Smallest MTU that carries IPv6.
    pub const MIN_IPV6: u16 = 1280;

    /// The number of bytes, 576..=9216.
    pub fn get(self) -> u16 {
        self.0
    }
}

impl FromStr for Mtu {
    type Err = MtuError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse()
            .ok()
            .filter(|mtu| text.bytes().all(|b| b.is_ascii_digit()) && (576..=9216).contains(mtu))
            .map(Self)
            .ok_or_else(|| MtuError { found: text.chars().take(64).collect() })
    }
}

impl fmt::Display for Mtu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_networks_carry_is_taken() {
        for text in ["576", "1500", "9000", "9216"] {
            assert_eq!(text.parse::<Mtu>().unwrap().to_string(), text);
        }
        for text in ["", "0", "575", "9217", "70000", "+1500", "1500B"] {
            assert!(text.parse::<Mtu>().is_err(), "{text}");
        }
    }
}
