//! Served bytes to disk bytes.

use std::io::{self, BufRead, Read};

use flate2::bufread::MultiGzDecoder;

use super::format::Format;

/// Largest zstd window, as a power of two of bytes: 32 MiB. It is the memory a frame may demand of us; plain
/// `zstd` up to level 19 needs 8 MiB.
const WINDOW_LOG: u32 = 25;

/// A reader of the decoded image.
///
/// Both formats may be several streams one after another; anything else after a stream, or a stream cut short, is
/// an error.
pub(super) fn decoder<'a>(format: Format, served: impl BufRead + 'a) -> io::Result<Box<dyn Read + 'a>> {
    Ok(match format {
        Format::Raw => Box::new(served),
        Format::Gzip => Box::new(MultiGzDecoder::new(served)),
        Format::Zstd => {
            let mut decoder = zstd::stream::read::Decoder::with_buffer(served)?;
            decoder.window_log_max(WINDOW_LOG)?;
            Box::new(decoder)
        }
    })
}

/// Bytes the first stream decodes to, when its header says so.
pub(super) fn declared_size(format: Format, head: &[u8]) -> Option<u64> {
    match format {
        // The size at the end of a gzip member is modulo 4 GiB, and at the wrong end.
        Format::Raw | Format::Gzip => None,
        Format::Zstd => zstd::zstd_safe::get_frame_content_size(head).ok().flatten(),
    }
}

/// What a decoder's error means to whoever made the image.
pub(super) fn explain(error: &io::Error) -> String {
    let text = error.to_string();
    if error.kind() == io::ErrorKind::UnexpectedEof || text.contains("incomplete frame") {
        "it ends too early".to_owned()
    } else if text.contains("too much memory") {
        format!("its window is over {} MiB; compress without --long or --ultra", (1_u64 << WINDOW_LOG) >> 20)
    } else {
        text
    }
}
