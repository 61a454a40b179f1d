//! When this program was built: no honest clock is behind that.

use super::Unix;

/// 2026-11-01: older than any build of this version.
const WRITTEN: Unix = 1_793_491_200;

/// The time of the build, as `farrier-image` sets it from the source's own date, or somebody else by
/// `SOURCE_DATE_EPOCH`. What is not meaningful, such as 0, counts as none.
pub const BUILT: Unix = later(option_env!("SOURCE_DATE_EPOCH"));

const fn later(epoch: Option<&str>) -> Unix {
    match epoch {
        Some(text) if parse(text) > WRITTEN => parse(text),
        _ => WRITTEN,
    }
}

/// Decimal digits to a number, at compile time; anything else ends it.
const fn parse(text: &str) -> Unix {
    let bytes = text.as_bytes();
    let mut value: Unix = 0;
    let mut i = 0;
    while i < bytes.len() && bytes[i].is_ascii_digit() {
        value = value.saturating_mul(10).saturating_add((bytes[i] - b'0') as Unix);
        i += 1;
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_build_time_counts_when_it_is_one() {
        assert_eq!(later(Some("1800000000")), 1_800_000_000);
        for nothing in [None, Some(""), Some("0"), Some("x"), Some("1000000000")] {
            assert_eq!(later(nothing), WRITTEN, "{nothing:?}");
        }
        assert_eq!(parse("12x"), 12);
    }
}
