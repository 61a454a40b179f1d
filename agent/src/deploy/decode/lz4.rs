//! LZ4 frames.

use std::io::{self, BufRead, Read};

use lz4_flex::frame::FrameDecoder;

use super::ends_too_early;

/// Decodes any number of frames.
///
/// The library takes an end of its input between two blocks for the end of the frame. So it is told of an end only
/// where a frame may begin; anywhere else the end is an error before it sees it.
pub(super) struct Reader<R: BufRead> {
    frames: FrameDecoder<Unending<R>>,
    in_frame: bool,
}

impl<R: BufRead> Reader<R> {
    pub(super) fn new(served: R) -> Self {
        Self { frames: FrameDecoder::new(Unending(served)), in_frame: false }
    }
}

impl<R: BufRead> Read for Reader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if !self.in_frame && self.frames.get_mut().0.fill_buf()?.is_empty() {
                return Ok(0);
            }
            self.in_frame = true;
            let n = self.frames.read(buffer)?;
            if n > 0 || buffer.is_empty() {
                return Ok(n);
            }
            self.in_frame = false;
        }
    }
}

/// A reader whose end is an error.
struct Unending<R>(R);

impl<R: Read> Read for Unending<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.read(buffer)? {
            0 if !buffer.is_empty() => Err(ends_too_early()),
            n => Ok(n),
        }
    }
}

/// Content size in the frame header (LZ4 frame format 1.6.4): bit 3 of the flags, eight bytes after two of them.
pub(super) fn declared_size(head: &[u8]) -> Option<u64> {
    let flags = head.get(4)?;
    let size = head.get(6..14)?.try_into().ok()?;
    (flags & 0x08 != 0).then(|| u64::from_le_bytes(size))
}
