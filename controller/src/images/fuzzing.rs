//! `Range` headers.

use super::range::{Part, parse};

/// The length of a file in eight bytes, then a header.
pub fn range(bytes: &[u8]) {
    let Some((length, text)) = bytes.split_first_chunk() else { return };
    let length = u64::from_le_bytes(*length);
    if let Part::Bytes { first, last } = parse(&String::from_utf8_lossy(text), length) {
        assert!(first <= last && last < length);
    }
}
