//! Images as they are served.

use std::io::{BufRead, BufReader, ErrorKind, Read};

use sha2::{Digest as _, Sha256};

use super::decode::{Limits, declared_size, decoder};
use super::format::{Format, HEAD};

/// Decoded bytes looked at: enough for several blocks and clusters of every format, and no more than a moment's work.
const MOST: u64 = 4 << 20;

/// As a machine decodes that has room for several blocks at once.
const PARALLEL: Limits = Limits { threads: 2, memory: 64 << 20 };

/// An image of any format, whole and in small pieces, by one thread and by two: both must give the same.
pub fn image(bytes: &[u8]) {
    let Ok(format) = Format::of(&bytes[..bytes.len().min(HEAD)]) else { return };
    let _ = declared_size(format, &bytes[..bytes.len().min(HEAD)]);
    let whole = decode(format, bytes, 1 << 20, Limits::SINGLE);
    // What is decoded in pieces of a few bytes must not depend on where they end.
    let pieces = decode(format, BufReader::with_capacity(13, bytes), 1021, PARALLEL);
    assert_eq!(whole, pieces, "{}", format.name());
}

/// What came out: how much, its digest, and how it ended. Bytes decoded before an error are not compared, since a
/// decoder may hand them out or not.
#[derive(Debug, PartialEq, Eq)]
enum Decoded {
    Whole(u64, [u8; 32]),
    Broken,
}

fn decode(format: Format, served: impl BufRead, step: usize, limits: Limits) -> Decoded {
    let Ok(mut decoder) = decoder(format, served, limits) else { return Decoded::Broken };
    let (mut digest, mut length) = (Sha256::new(), 0);
    let mut buffer = vec![0; step];
    while length < MOST {
        let room = usize::try_from(MOST - length).unwrap_or(step).min(step);
        match decoder.read(&mut buffer[..room]) {
            Ok(0) => return Decoded::Whole(length, digest.finalize().into()),
            Ok(n) => {
                digest.update(&buffer[..n]);
                length += n as u64;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return Decoded::Broken,
        }
    }
    Decoded::Whole(length, digest.finalize().into())
}
