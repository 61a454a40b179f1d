//! Memory-capacity arithmetic (contract section 5): texts such as `32GiB` to whole decimal gigabytes.

/// Why a capacity text counts for nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{found:?} is not a memory capacity: expected a positive number and one of M, Mi, G, Gi, T, Ti, with an optional B"
)]
pub struct CapacityError {
    /// What was given, cut to a printable length.
    pub found: String,
}

/// Units and their size in bytes, longest suffix first so that `Gi` is not read as `G`.
const UNITS: [(&str, u128); 6] = [
    ("Mi", 1 << 20),
    ("Gi", 1 << 30),
    ("Ti", 1 << 40),
    ("M", 1_000_000),
    ("G", 1_000_000_000),
    ("T", 1_000_000_000_000),
];

/// Decimal places kept of the number; a Kubernetes quantity has nano precision at most.
const MAX_DECIMALS: u32 = 9;

/// Whole gigabytes (10⁹ bytes, rounded down) in a module of this capacity: `32GiB` is 34.
///
/// Rounding is per module, before summing, as the contract has it.
///
/// # Errors
/// When the text has no known unit, is zero or negative, or is not a number.
pub fn gigabytes(text: &str) -> Result<i64, CapacityError> {
    let error = || CapacityError { found: text.chars().take(64).collect() };
    let compact: String = text.trim().chars().filter(|c| *c != ' ').collect();
    let without_b = match compact.strip_suffix('B') {
        Some(rest) if rest.ends_with(|c: char| c.is_ascii_alphabetic()) => rest,
        _ => compact.as_str(),
    };
    let (number, unit) = UNITS
        .iter()
        .find_map(|(suffix, size)| Some((without_b.strip_suffix(suffix)?, *size)))
        .ok_or_else(error)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    let decimals = u32::try_from(fraction.len()).unwrap_or(u32::MAX);
    if (whole.is_empty() && fraction.is_empty())
        || !digits(whole)
        || !digits(fraction)
        || decimals > MAX_DECIMALS
    {
        return Err(error());
    }
    let mantissa: u128 = format!("0{whole}{fraction}").parse().map_err(|_| error())?;
    let bytes = mantissa.checked_mul(unit).ok_or_else(error)? / 10_u128.pow(decimals);
    if bytes == 0 {
        return Err(error());
    }
    i64::try_from(bytes / 1_000_000_000).map_err(|_| error())
}
