//! The forms in which a secret may stand in a log. What is made of it one way, such as a hash, is none of them.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

/// Characters of base64 that are nowhere by chance.
const TELLING: usize = 16;

/// All forms of one secret.
#[derive(Clone, Default)]
pub(super) struct Forms {
    /// As they are; in a log that is percent-encoded, once that is undone.
    texts: Vec<String>,
    /// In lower case, for logs in lower case.
    hex: Vec<String>,
}

impl Forms {
    /// A text as it is, in the other alphabet where it is base64 itself, and its bytes.
    pub(super) fn add_text(&mut self, text: &str) {
        self.texts.extend([text.to_owned(), text.replace('-', "+").replace('_', "/")]);
        self.add_bytes(text.as_bytes());
    }

    /// Bytes in hex, and in base64 wherever they stand in what is encoded.
    pub(super) fn add_bytes(&mut self, bytes: &[u8]) {
        self.hex.push(hex::encode(bytes));
        for before in 0..3 {
            let mut all = vec![0; before];
            all.extend(bytes);
            // Characters that depend on these bytes alone.
            let own = (before * 8).div_ceil(6)..all.len() * 8 / 6;
            for text in [STANDARD_NO_PAD.encode(&all), URL_SAFE_NO_PAD.encode(&all)] {
                self.texts.extend(halves(&text[own.clone()]).map(str::to_owned));
            }
        }
    }

    /// Whether any of them is in a log.
    pub(super) fn are_in(&self, log: &Log) -> bool {
        self.texts.iter().any(|text| log.plain.contains(text) || log.decoded.contains(text))
            || self.hex.iter().any(|hex| log.lower.contains(hex))
    }
}

/// Base64 is wrapped into lines: wherever it is, one half of it is whole.
fn halves(text: &str) -> impl Iterator<Item = &str> {
    let (first, second) = text.split_at(text.len() / 2);
    let parts = if first.len() >= TELLING { [first, second] } else { [text, text] };
    parts.into_iter()
}

/// A log, in the ways it is searched.
pub(super) struct Log {
    plain: String,
    /// Percent-encoding undone.
    decoded: String,
    lower: String,
}

impl Log {
    pub(super) fn new(bytes: &[u8]) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let plain = text(bytes);
        Self { decoded: text(&without_percent(bytes)), lower: plain.to_ascii_lowercase(), plain }
    }
}

fn without_percent(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let [first, behind @ ..] = rest {
        let mut byte = [*first];
        rest = behind;
        if *first == b'%'
            && let Some((digits, further)) = behind.split_at_checked(2)
            && hex::decode_to_slice(digits, &mut byte).is_ok()
        {
            rest = further;
        }
        out.push(byte[0]);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_found_in_base64_at_any_place_and_over_a_line_break() {
        let secret: Vec<u8> = (0..32).map(|n| (n * 7) ^ 0xfb).collect();
        let mut forms = Forms::default();
        forms.add_bytes(&secret);
        for before in 0..7 {
            for behind in 0..4 {
                let all = [&vec![0xa5; before], &secret[..], &vec![0x5a; behind]].concat();
                for text in [STANDARD_NO_PAD.encode(&all), URL_SAFE_NO_PAD.encode(&all)] {
                    assert!(forms.are_in(&Log::new(text.as_bytes())), "{before} {behind}");
                    for at in 0..text.len() {
                        let (one, other) = text.split_at(at);
                        let log = format!("{one}\n{other}");
                        assert!(forms.are_in(&Log::new(log.as_bytes())), "broken at {at}");
                    }
                }
            }
        }
        assert!(!forms.are_in(&Log::new(STANDARD_NO_PAD.encode(&secret[..8]).as_bytes())));
    }

    #[test]
    fn percent_signs_that_encode_nothing_stay() {
        assert_eq!(without_percent(b"100%, %4a%4B%2f%zz%4"), b"100%, JK/%zz%4");
    }
}
