//! xz, by liblzma: its blocks in parallel where their headers tell their sizes, as `xz -T` writes them.

use std::io::{self, BufRead, ErrorKind, Read};

use liblzma::stream::{Action, Error, MtStreamBuilder, Status, Stream};

use super::{Limits, ends_too_early};

/// Memory that decoding in one thread may take, in bytes. `xz -9` needs 65 MiB; a custom dictionary may ask for
/// 4 GiB.
const MEMORY: u64 = 128 << 20;

/// Decodes any number of streams, and the padding between them.
pub(super) struct Reader<R> {
    served: R,
    limits: Limits,
    /// [`None`] between streams.
    stream: Option<Stream>,
    /// Bytes of padding after the last stream, modulo four.
    padding: usize,
}

impl<R: BufRead> Reader<R> {
    pub(super) fn new(served: R, limits: Limits) -> Self {
        Self { served, limits, stream: None, padding: 0 }
    }

    fn new_stream(limits: Limits) -> io::Result<Stream> {
        let mut builder = MtStreamBuilder::new();
        builder.threads(limits.threads).memlimit_threading(limits.memory).memlimit_stop(MEMORY);
        builder.decoder().map_err(explain)
    }
}

impl<R: BufRead> Read for Reader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let input = self.served.fill_buf()?;
            let at_end = input.is_empty();
            let Some(stream) = &mut self.stream else {
                // Streams may be padded with zeros to a multiple of four bytes (xz file format, section 2.2).
                let zeros = input.iter().take_while(|byte| **byte == 0).count();
                self.padding = (self.padding + zeros) % 4;
                if zeros == input.len() {
                    self.served.consume(zeros);
                    match (at_end, self.padding) {
                        (false, _) => continue,
                        (true, 0) => return Ok(0),
                        (true, _) => return Err(ends_too_early()),
                    }
                }
                self.served.consume(zeros);
                if self.padding != 0 {
                    return Err(io::Error::new(ErrorKind::InvalidData, "other bytes follow a stream"));
                }
                self.stream = Some(Self::new_stream(self.limits)?);
                continue;
            };
            let before = (stream.total_in(), stream.total_out());
            let action = if at_end { Action::Finish } else { Action::Run };
            let status = stream.process(input, buffer, action).map_err(explain)?;
            let taken = usize::try_from(stream.total_in() - before.0).unwrap_or(usize::MAX);
            let made = usize::try_from(stream.total_out() - before.1).unwrap_or(usize::MAX);
            self.served.consume(taken);
            if status == Status::StreamEnd {
                (self.stream, self.padding) = (None, 0);
            }
            if made > 0 || buffer.is_empty() {
                return Ok(made);
            }
            if taken == 0 && status != Status::StreamEnd {
                // No input taken and no output made: it waits for what never comes.
                return Err(ends_too_early());
            }
        }
    }
}

fn explain(error: Error) -> io::Error {
    let text = match error {
        Error::MemLimit => "its dictionary needs over 128 MiB; compress with xz -9 or less",
        Error::Format => "other bytes follow a stream",
        Error::Data => "its data is corrupt",
        Error::Options => "it uses a filter or check that is not supported",
        other => return io::Error::other(other),
    };
    io::Error::new(ErrorKind::InvalidData, text)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write as _;
    use std::thread;

    use liblzma::stream::Check;

    use super::*;

    const BLOCK: usize = 1 << 20;

    /// Bytes of so many blocks, and they as `xz -T` makes them.
    fn image(blocks: usize) -> (Vec<u8>, Vec<u8>) {
        let bytes: Vec<u8> = (0..blocks * BLOCK).map(|n| (n / 777 * 31 + n % 7).to_le_bytes()[0]).collect();
        let mut builder = MtStreamBuilder::new();
        let stream = builder.threads(1).preset(0).block_size(BLOCK as u64).check(Check::Crc64).encoder();
        let mut encoder = liblzma::write::XzEncoder::new_stream(Vec::new(), stream.unwrap());
        encoder.write_all(&bytes).unwrap();
        (bytes, encoder.finish().unwrap())
    }

    /// Threads of this process that have this thread's name, itself included: those it made inherit it.
    fn threads() -> usize {
        let own = fs::read("/proc/thread-self/comm").unwrap();
        let tasks = fs::read_dir("/proc/self/task").unwrap().flatten();
        tasks.filter(|task| fs::read(task.path().join("comm")).is_ok_and(|name| name == own)).count()
    }

    /// Decodes in a thread of this name; what came, and the most threads there were.
    fn decode(name: &str, served: Vec<u8>, limits: Limits) -> (Vec<u8>, usize) {
        let work = move || {
            let mut reader = Reader::new(&served[..], limits);
            let (mut decoded, mut most, mut piece) = (Vec::new(), 0, vec![0; 64 << 10]);
            loop {
                let n = reader.read(&mut piece).unwrap();
                most = most.max(threads());
                decoded.extend_from_slice(&piece[..n]);
                if n == 0 {
                    return (decoded, most);
                }
            }
        };
        thread::Builder::new().name(name.to_owned()).spawn(work).unwrap().join().unwrap()
    }

    #[test]
    fn blocks_are_decoded_by_as_many_threads_as_may_be_used() {
        let (bytes, served) = image(8);
        let (decoded, threads) =
            decode("xz by four", served.clone(), Limits { threads: 4, memory: 256 << 20 });
        assert!(decoded == bytes);
        assert!((3..=5).contains(&threads), "{threads}, the one that reads included");
        let (decoded, threads) = decode("xz by one", served, Limits::SINGLE);
        assert!(decoded == bytes);
        assert!(threads <= 2, "{threads}");
    }
}
