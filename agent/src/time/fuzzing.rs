//! What time servers, or whoever plays one, may send.

use super::sntp;

/// An answer to the question whose nonce it names, and to one it does not.
pub fn sntp(bytes: &[u8]) {
    let named = bytes.get(24..).and_then(<[u8]>::first_chunk).map_or(0, |nonce| u64::from_be_bytes(*nonce));
    if let Ok(time) = sntp::read(bytes, named) {
        // From the middle of one era, in 1968, to the middle of the next.
        assert!(time < 1 << 33, "{time}");
    }
    assert!(sntp::read(bytes, !named).is_err(), "an answer to another question");
}
