//! Opening a file that cannot be outside its folder.

use std::fs::File;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat2};

/// An open regular file.
#[derive(Debug)]
pub(super) struct Opened {
    /// The file.
    pub(super) file: File,
    /// Its length when it was opened.
    pub(super) len: u64,
    version: String,
}

impl Opened {
    /// Changes whenever the file is replaced or written to.
    pub(super) fn etag(&self) -> String {
        format!("\"{}\"", self.version)
    }
}

/// Opens `path` below `dir`. The kernel itself refuses whatever would lead out of it: `..`, absolute paths,
/// and symbolic links to elsewhere.
///
/// # Errors
/// When there is no such regular file within `dir`.
pub(super) fn beneath(dir: &Path, path: &str) -> std::io::Result<Opened> {
    let root = File::open(dir)?;
    // Not blocking: a FIFO somebody left there must not hang the opener.
    let how = OpenHow::new()
        .flags(OFlag::O_RDONLY | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK | OFlag::O_NOCTTY)
        .resolve(ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_MAGICLINKS);
    let file = File::from(openat2(&root, path, how)?);
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Err(std::io::Error::other("not a regular file"));
    }
    let version = format!("{:x}-{:x}-{:x}.{:x}", meta.ino(), meta.len(), meta.mtime(), meta.mtime_nsec());
    Ok(Opened { len: meta.len(), file, version })
}
