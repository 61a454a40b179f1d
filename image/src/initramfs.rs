//! The initramfs: a newc archive in zstd, byte for byte the same for the same input.
//!
//! Entries are sorted by path, owned by root, dated as the source is (or 0), and numbered in order.
//! Compression runs on one thread, since zstd's output depends on how input is split among threads.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;

const S_IFDIR: u32 = 0o040_000;
const S_IFREG: u32 = 0o100_000;
const S_IFCHR: u32 = 0o020_000;
/// High enough that the archive is small, low enough that a kernel needs 8 MiB to decompress it.
const ZSTD_LEVEL: i32 = 19;

/// Why an initramfs could not be made.
#[derive(Debug, thiserror::Error)]
pub enum InitramfsError {
    /// A path that has no place in an archive.
    #[error(
        "path `{path}` cannot be in the initramfs: expected a relative path without empty, `.` or `..` parts"
    )]
    Path {
        /// The path.
        path: String,
    },
    /// Two entries, or a file where another entry needs a directory.
    #[error("the initramfs has two entries called `{path}`")]
    Duplicate {
        /// The path.
        path: String,
    },
    /// The newc format holds sizes in 32 bits.
    #[error("`{path}` is {size} bytes: an initramfs holds files up to 4294967295 bytes")]
    TooLarge {
        /// The path.
        path: String,
        /// Its size in bytes.
        size: usize,
    },
    /// The archive could not be written.
    #[error("cannot write the initramfs to {}: {source}", path.display())]
    Write {
        /// The output file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// What stands at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Entry {
    Directory,
    File { mode: u32, bytes: Vec<u8> },
    CharDevice { mode: u32, major: u32, minor: u32 },
}

/// An initramfs being put together. Parent directories appear by themselves.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Initramfs {
    entries: BTreeMap<String, Entry>,
}

impl Initramfs {
    /// An empty directory, mode 0755.
    ///
    /// # Errors
    /// When the path is malformed or is already a file.
    pub fn directory(&mut self, path: &str) -> Result<(), InitramfsError> {
        self.parents(path)?;
        match self.entries.entry(path.to_owned()).or_insert(Entry::Directory) {
            Entry::Directory => Ok(()),
            _ => Err(InitramfsError::Duplicate { path: path.to_owned() }),
        }
    }

    /// A regular file with these permission bits.
    ///
    /// # Errors
    /// When the path is malformed or taken, or the file too large for the format.
    pub fn file(&mut self, path: &str, mode: u32, bytes: Vec<u8>) -> Result<(), InitramfsError> {
        if u32::try_from(bytes.len()).is_err() {
            return Err(InitramfsError::TooLarge { path: path.to_owned(), size: bytes.len() });
        }
        self.add(path, Entry::File { mode, bytes })
    }

    /// A character device, for what the kernel and PID 1 need before devtmpfs is mounted.
    ///
    /// # Errors
    /// When the path is malformed or taken.
    pub fn char_device(
        &mut self,
        path: &str,
        mode: u32,
        major: u32,
        minor: u32,
    ) -> Result<(), InitramfsError> {
        self.add(path, Entry::CharDevice { mode, major, minor })
    }

    /// Number of entries, directories included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether nothing was added.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Writes the plain newc archive.
    ///
    /// # Errors
    /// When `out` fails.
    pub fn write_newc<W: Write>(&self, mut out: W, mtime: u32) -> std::io::Result<W> {
        for (number, (path, entry)) in (1_u32..).zip(&self.entries) {
            let header = cpio::NewcBuilder::new(path).ino(number).mtime(mtime);
            let (header, bytes): (_, &[u8]) = match entry {
                Entry::Directory => (header.mode(S_IFDIR | 0o755).nlink(2), &[]),
                Entry::File { mode, bytes } => (header.mode(S_IFREG | mode), bytes),
                Entry::CharDevice { mode, major, minor } => {
                    (header.mode(S_IFCHR | mode).rdev_major(*major).rdev_minor(*minor), &[])
                }
            };
            // `file` refuses larger ones.
            let size = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
            let mut writer = header.write(out, size);
            writer.write_all(bytes)?;
            out = writer.finish()?;
        }
        cpio::newc::trailer(out)
    }

    /// Writes the compressed archive, as the kernel takes it.
    ///
    /// # Errors
    /// When `out` or the compressor fails.
    pub fn write_compressed<W: Write>(&self, out: W, mtime: u32) -> std::io::Result<W> {
        let mut encoder = zstd::Encoder::new(out, ZSTD_LEVEL)?;
        // The kernel checks it: a download cut or bent on the way fails to unpack instead of half starting.
        encoder.include_checksum(true)?;
        self.write_newc(encoder, mtime)?.finish()
    }

    fn add(&mut self, path: &str, entry: Entry) -> Result<(), InitramfsError> {
        self.parents(path)?;
        match self.entries.insert(path.to_owned(), entry) {
            None => Ok(()),
            Some(_) => Err(InitramfsError::Duplicate { path: path.to_owned() }),
        }
    }

    fn parents(&mut self, path: &str) -> Result<(), InitramfsError> {
        let well_formed =
            !path.contains('\0') && path.split('/').all(|part| !matches!(part, "" | "." | ".."));
        if !well_formed {
            return Err(InitramfsError::Path { path: path.to_owned() });
        }
        for (end, _) in path.match_indices('/') {
            let parent = self.entries.entry(path[..end].to_owned()).or_insert(Entry::Directory);
            if *parent != Entry::Directory {
                return Err(InitramfsError::Duplicate { path: path[..end].to_owned() });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sample() -> Initramfs {
        let mut image = Initramfs::default();
        image.file("lib/modules/6.1/kernel/nvme.ko", 0o644, b"module".to_vec()).expect("file");
        image.file("init", 0o755, b"agent".to_vec()).expect("init");
        image.char_device("dev/console", 0o600, 5, 1).expect("console");
        image.directory("proc").expect("proc");
        image
    }

    /// Path, mode, (major, minor), contents and (uid, gid, mtime) of every entry.
    type Read = (String, u32, (u32, u32), Vec<u8>, (u32, u32, u32));

    fn read_back(archive: &[u8]) -> Vec<Read> {
        let mut rest = archive;
        let mut entries = Vec::new();
        loop {
            let reader = cpio::NewcReader::new(rest).expect("header");
            let entry = reader.entry();
            if entry.is_trailer() {
                return entries;
            }
            let meta = (entry.uid(), entry.gid(), entry.mtime());
            let (name, mode) = (entry.name().to_owned(), entry.mode());
            let device = (entry.rdev_major(), entry.rdev_minor());
            let mut bytes = Vec::new();
            rest = reader.to_writer(&mut bytes).expect("contents");
            entries.push((name, mode, device, bytes, meta));
        }
    }

    #[test]
    fn entries_come_sorted_with_parents_first_and_root_as_owner() {
        let archive = sample().write_newc(Vec::new(), 1_700_000_000).expect("archive");
        let entries = read_back(&archive);
        let names: Vec<&str> = entries.iter().map(|entry| entry.0.as_str()).collect();
        assert_eq!(
            names,
            [
                "dev",
                "dev/console",
                "init",
                "lib",
                "lib/modules",
                "lib/modules/6.1",
                "lib/modules/6.1/kernel",
                "lib/modules/6.1/kernel/nvme.ko",
                "proc"
            ]
        );
        assert!(entries.iter().all(|entry| entry.4 == (0, 0, 1_700_000_000)), "{entries:?}");
        let find = |name: &str| entries.iter().find(|entry| entry.0 == name).expect("entry");
        assert_eq!((find("init").1, find("init").3.as_slice()), (0o100_755, b"agent".as_slice()));
        assert_eq!((find("dev/console").1, find("dev/console").2), (0o020_600, (5, 1)));
        assert_eq!(find("proc").1, 0o040_755);
    }

    #[test]
    fn the_compressed_archive_decompresses_to_the_plain_one() {
        let packed = sample().write_compressed(Vec::new(), 0).expect("archive");
        let plain = sample().write_newc(Vec::new(), 0).expect("archive");
        assert_eq!(zstd::decode_all(packed.as_slice()).expect("decompress"), plain);
    }

    #[test]
    fn paths_that_leave_or_repeat_are_refused() {
        for path in ["/init", "a//b", "../etc", "a/./b", "", "a/"] {
            let error = Initramfs::default().directory(path).expect_err(path);
            assert!(matches!(error, InitramfsError::Path { .. }), "{path}: {error}");
        }
        let mut image = sample();
        for (path, what) in [("init", "taken"), ("init/below", "a file for a parent")] {
            let error = image.file(path, 0o644, Vec::new()).expect_err(what);
            assert!(matches!(error, InitramfsError::Duplicate { .. }), "{what}: {error}");
        }
    }

    proptest! {
        #[test]
        fn the_order_of_adding_does_not_show(
            files in proptest::collection::btree_map("[a-d]{1,3}/[e-h]{1,3}", proptest::collection::vec(any::<u8>(), 0..50), 0..12)
        ) {
            let mut forwards = Initramfs::default();
            let mut backwards = Initramfs::default();
            for (path, bytes) in &files {
                forwards.file(path, 0o644, bytes.clone()).expect("file");
            }
            for (path, bytes) in files.iter().rev() {
                backwards.file(path, 0o644, bytes.clone()).expect("file");
            }
            // Uncompressed: the compressor is a function of these bytes.
            prop_assert_eq!(
                forwards.write_newc(Vec::new(), 7).expect("archive"),
                backwards.write_newc(Vec::new(), 7).expect("archive")
            );
        }
    }
}
