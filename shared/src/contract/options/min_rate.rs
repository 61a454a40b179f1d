//! `farrier.min-rate`: how slow an image server may be.

use std::fmt;
use std::str::FromStr;

use super::NotAccepted;

/// Units of a rate, largest first, as powers of two of bytes.
const UNITS: [(char, u32); 3] = [('G', 30), ('M', 20), ('K', 10)];

/// Bytes per second that an image server must bring; 0 is no minimum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MinRate(u64);

impl MinRate {
    /// So many bytes per second.
    pub fn from_bytes_per_second(rate: u64) -> Self {
        Self(rate)
    }

    /// Bytes per second; [`None`] without a minimum.
    pub fn bytes_per_second(self) -> Option<u64> {
        (self.0 > 0).then_some(self.0)
    }
}

impl FromStr for MinRate {
    type Err = NotAccepted;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let unit = UNITS.into_iter().find_map(|(unit, power)| Some((text.strip_suffix(unit)?, power)));
        let (digits, power) = unit.unwrap_or((text, 0));
        let number: Option<u64> =
            Some(digits).filter(|d| d.bytes().all(|b| b.is_ascii_digit())).and_then(|d| d.parse().ok());
        let rate = number.and_then(|number| number.checked_mul(1 << power));
        rate.map(Self).ok_or_else(|| {
            NotAccepted::new(text, "bytes per second, with K, M or G for powers of 1024; 0 for no minimum")
        })
    }
}

impl fmt::Display for MinRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = UNITS.into_iter().find(|(_, power)| self.0 > 0 && self.0.is_multiple_of(1 << power));
        match unit {
            Some((unit, power)) => write!(f, "{}{unit}", self.0 >> power),
            None => self.0.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_read_as_they_are_written() {
        for (text, rate) in [
            ("0", None),
            ("700", Some(700)),
            ("512K", Some(512 << 10)),
            ("3M", Some(3 << 20)),
            ("1G", Some(1 << 30)),
        ] {
            let parsed: MinRate = text.parse().unwrap();
            assert_eq!((parsed.bytes_per_second(), parsed.to_string().as_str()), (rate, text));
        }
        assert_eq!("1024K".parse::<MinRate>().unwrap().to_string(), "1M");
    }

    #[test]
    fn what_is_no_rate_is_refused() {
        for text in ["", "K", "-1", "+1", "1.5M", "1k", "1MB", "1 M", "18446744073709551616", "99999999999G"]
        {
            assert!(text.parse::<MinRate>().is_err(), "{text:?}");
        }
    }
}
