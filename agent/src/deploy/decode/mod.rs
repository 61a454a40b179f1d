//! Served bytes to disk bytes: the one table of decoders.
//!
//! Each reads to the end of what is served: several streams one after another are one image, and anything else after
//! a stream, or a stream cut short, is an error. Each has a bound on the memory an image may demand.

mod limits;
mod lz4;
mod qcow2;
mod xz;

use std::io::{self, BufRead, ErrorKind, Read};

use bzip2::bufread::MultiBzDecoder;
use flate2::bufread::MultiGzDecoder;

pub(super) use self::limits::Limits;
use super::DeployError;
use super::format::Format;

/// Largest zstd window, as a power of two of bytes: 32 MiB. It is the memory a frame may demand of us; plain
/// `zstd` up to level 19 needs 8 MiB.
const WINDOW_LOG: u32 = 25;

/// A reader of the decoded image.
pub(super) fn decoder<'a>(
    format: Format,
    served: impl BufRead + 'a,
    limits: Limits,
) -> io::Result<Box<dyn Read + 'a>> {
    Ok(match format {
        Format::Raw => Box::new(served),
        Format::Gzip => Box::new(MultiGzDecoder::new(served)),
        Format::Zstd => {
            let mut decoder = zstd::stream::read::Decoder::with_buffer(served)?;
            decoder.window_log_max(WINDOW_LOG)?;
            Box::new(decoder)
        }
        Format::Xz => Box::new(xz::Reader::new(served, limits)),
        Format::Bzip2 => Box::new(MultiBzDecoder::new(served)),
        Format::Lz4 => Box::new(lz4::Reader::new(served)),
        Format::Qcow2 => Box::new(qcow2::Reader::new(served)?),
    })
}

/// Bytes the image decodes to, when its first bytes say so. For zstd that is its first frame only.
///
/// # Errors
/// When these bytes already show that it cannot be decoded here.
pub(super) fn declared_size(format: Format, head: &[u8]) -> Result<Option<u64>, DeployError> {
    Ok(match format {
        // The size at the end of a gzip member is modulo 4 GiB, and at the wrong end; xz has it at the end, too.
        Format::Raw | Format::Gzip | Format::Xz | Format::Bzip2 => None,
        Format::Zstd => zstd::zstd_safe::get_frame_content_size(head).ok().flatten(),
        Format::Lz4 => lz4::declared_size(head),
        Format::Qcow2 => Some(qcow2::declared_size(head).map_err(|e| broken(format, 0, &e.into()))?),
    })
}

/// What a decoder's error means to whoever made the image.
pub(super) fn broken(format: Format, decoded: u64, error: &io::Error) -> DeployError {
    let format = format.name();
    match error.kind() {
        ErrorKind::ConnectionAborted => DeployError::Abandoned,
        ErrorKind::Unsupported => DeployError::Layout { format, cause: error.to_string() },
        _ => DeployError::Decode { format, decoded, cause: explain(error) },
    }
}

fn explain(error: &io::Error) -> String {
    let text = error.to_string();
    if error.kind() == ErrorKind::UnexpectedEof || text.contains("incomplete frame") {
        "it ends too early".to_owned()
    } else if text.contains("too much memory") {
        format!("its window is over {} MiB; compress without --long or --ultra", (1_u64 << WINDOW_LOG) >> 20)
    } else {
        text
    }
}

/// An error for a stream that ends in the middle.
fn ends_too_early() -> io::Error {
    io::Error::new(ErrorKind::InvalidData, "it ends too early")
}
