//! Shell patterns of `modules.alias`: `*`, `?`, `[…]`, with `-` and `_` the same outside brackets.

/// Whether `text` as a whole matches `pattern`. Linear in time but for `*`, which backtracks once.
pub(super) fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut p, mut t) = (0, 0);
    // Where the last star was, and how far into the text it reaches.
    let mut star: Option<(usize, usize)> = None;
    loop {
        let advanced = match (pattern.get(p), text.get(t)) {
            (None, None) => return true,
            (Some(b'*'), _) => {
                star = Some((p, t));
                p += 1;
                continue;
            }
            (Some(_), Some(byte)) => one(&pattern[p..], *byte),
            _ => None,
        };
        match (advanced, star) {
            (Some(len), _) => {
                p += len;
                t += 1;
            }
            (None, Some((at, reach))) if reach < text.len() => {
                star = Some((at, reach + 1));
                p = at + 1;
                t = reach + 1;
            }
            _ => return false,
        }
    }
}

/// Length of the pattern's first element when it matches the byte.
fn one(pattern: &[u8], byte: u8) -> Option<usize> {
    match pattern.first()? {
        b'?' => Some(1),
        b'[' => bracket(pattern, byte),
        other => (fold(*other) == fold(byte)).then_some(1),
    }
}

fn bracket(pattern: &[u8], byte: u8) -> Option<usize> {
    let end = pattern.iter().skip(2).position(|b| *b == b']')? + 2;
    let (negated, set) = match pattern[1] {
        b'!' | b'^' if end > 2 => (true, &pattern[2..end]),
        _ => (false, &pattern[1..end]),
    };
    let mut hit = false;
    let mut i = 0;
    while i < set.len() {
        if set.len() > i + 2 && set[i + 1] == b'-' {
            hit |= (set[i]..=set[i + 2]).contains(&byte);
            i += 3;
        } else {
            hit |= set[i] == byte;
            i += 1;
        }
    }
    (hit != negated).then_some(end + 1)
}

fn fold(byte: u8) -> u8 {
    if byte == b'-' { b'_' } else { byte }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn patterns_of_every_bus() {
        let cases = [
            (
                "pci:v00008086d000010D3sv*sd*bc*sc*i*",
                "pci:v00008086d000010D3sv00001AF4sd00001100bc02sc00i00",
                true,
            ),
            (
                "pci:v00008086d000010D3sv*sd*bc*sc*i*",
                "pci:v00008086d000010D4sv00001AF4sd00001100bc02sc00i00",
                false,
            ),
            ("virtio:d00000001v*", "virtio:d00000001v00001AF4", true),
            ("scsi:t-0x00*", "scsi:t-0x00", true),
            ("scsi:t-0x00*", "scsi:t_0x00", true),
            (
                "usb:v*p*d*dc*dsc*dp*ic08isc06ip50in*",
                "usb:v0951p1666d0110dc00dsc00dp00ic08isc06ip50in00",
                true,
            ),
            ("acpi*:PNP0C09:*", "acpi:PNP0C09:", true),
            ("hid:b0003g*v0000046Dp0000C0[0-9A]*", "hid:b0003g0001v0000046Dp0000C0A1", true),
            ("hid:b0003g*v0000046Dp0000C0[!0-9]*", "hid:b0003g0001v0000046Dp0000C0A1", true),
            ("x[!0-9]", "x5", false),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("", "", true),
            ("*", "", true),
            ("abc", "abcd", false),
            ("[", "[", false),
        ];
        for (pattern, text, expected) in cases {
            assert_eq!(matches(pattern, text), expected, "{pattern} on {text}");
        }
    }

    proptest! {
        #[test]
        fn any_pattern_on_any_text_ends(pattern in r"[a-c\[\]!^*?-]{0,24}", text in "[a-c_-]{0,24}") {
            let _ = matches(&pattern, &text);
        }

        #[test]
        fn a_text_matches_itself_and_its_prefix_with_a_star(text in "[a-zA-Z0-9:]{0,40}", cut in 0_usize..40) {
            prop_assert!(matches(&text, &text));
            let prefix = format!("{}*", &text[..cut.min(text.len())]);
            prop_assert!(matches(&prefix, &text));
        }
    }
}
