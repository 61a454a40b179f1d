//! The `Range` header, as far as one range goes (RFC 9110, section 14).

/// What part of a file is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// All of it; also for whatever is not understood, as the RFC has it.
    Whole,
    /// These bytes, both inclusive.
    Bytes {
        /// First.
        first: u64,
        /// Last.
        last: u64,
    },
    /// Nothing that is there.
    Unsatisfiable,
}

/// Reads a `Range` header for a file of `len` bytes.
pub(super) fn parse(text: &str, len: u64) -> Part {
    let Some((unit, spec)) = text.split_once('=') else { return Part::Whole };
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return Part::Whole;
    }
    let Some((from, to)) = spec.trim().split_once('-') else { return Part::Whole };
    let number = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        // Digits that do not fit are a number beyond any file.
        digits.then(|| text.parse::<u64>().unwrap_or(u64::MAX))
    };
    match (from, to, number(from), number(to)) {
        ("", _, _, Some(0)) => Part::Unsatisfiable,
        ("", _, _, Some(_)) if len == 0 => Part::Unsatisfiable,
        ("", _, _, Some(suffix)) => Part::Bytes { first: len.saturating_sub(suffix), last: len - 1 },
        (_, "", Some(first), _) if first < len => Part::Bytes { first, last: len - 1 },
        (_, "", Some(_), _) => Part::Unsatisfiable,
        (_, _, Some(first), Some(last)) if first > last => Part::Whole,
        (_, _, Some(first), Some(last)) if first < len => Part::Bytes { first, last: last.min(len - 1) },
        (_, _, Some(_), Some(_)) => Part::Unsatisfiable,
        _ => Part::Whole,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_by_table() {
        let bytes = |first, last| Part::Bytes { first, last };
        let table = [
            ("bytes=0-0", 10, bytes(0, 0)),
            ("bytes=2-5", 10, bytes(2, 5)),
            ("Bytes= 2-5 ", 10, bytes(2, 5)),
            ("bytes=2-", 10, bytes(2, 9)),
            ("bytes=-3", 10, bytes(7, 9)),
            ("bytes=-30", 10, bytes(0, 9)),
            ("bytes=5-99999999999999999999999", 10, bytes(5, 9)),
            ("bytes=9-", 10, bytes(9, 9)),
            ("bytes=10-", 10, Part::Unsatisfiable),
            ("bytes=10-12", 10, Part::Unsatisfiable),
            ("bytes=-0", 10, Part::Unsatisfiable),
            ("bytes=0-", 0, Part::Unsatisfiable),
            ("bytes=-1", 0, Part::Unsatisfiable),
            ("bytes=5-2", 10, Part::Whole),
            ("bytes=0-1,3-4", 10, Part::Whole),
            ("bytes=-", 10, Part::Whole),
            ("bytes=+1-2", 10, Part::Whole),
            ("bytes", 10, Part::Whole),
            ("lines=0-1", 10, Part::Whole),
        ];
        for (text, len, expected) in table {
            assert_eq!(parse(text, len), expected, "{text} of {len}");
        }
    }
}
