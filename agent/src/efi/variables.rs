//! The firmware's global variables, as efivarfs shows them (kernel: Documentation/filesystems/efivarfs.rst).

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::PathBuf;

use crate::sys::inode_flags;

/// Of `EFI_GLOBAL_VARIABLE`.
const GLOBAL: &str = "8be4df61-93ca-11d2-aa0d-00e098032b8c";
/// Kept over power cycles, and seen by firmware and running system.
const ATTRIBUTES: u32 = 7;
/// Largest variable read, in bytes.
const MAX: u64 = 64 << 10;

/// Variables of the firmware, without their attributes.
pub trait Variables {
    /// Names of all there are.
    ///
    /// # Errors
    /// When they cannot be listed.
    fn names(&self) -> io::Result<Vec<String>>;
    /// Content of one; [`None`] when there is none.
    ///
    /// # Errors
    /// When the firmware does not answer.
    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>>;
    /// Sets one, whether or not it is there.
    ///
    /// # Errors
    /// When the firmware refuses; `ENOSPC` when its store is full.
    fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()>;
    /// Removes one.
    ///
    /// # Errors
    /// When the firmware refuses.
    fn remove(&self, name: &str) -> io::Result<()>;
}

/// Those of the running machine.
#[derive(Clone, Debug)]
pub struct Efivarfs {
    dir: PathBuf,
}

impl Efivarfs {
    /// Where efivarfs is mounted.
    pub fn at(dir: PathBuf) -> Self {
        Self { dir }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.join(format!("{name}-{GLOBAL}"))
    }

    /// Does something to a variable, and once more without its protection against `rm -rf` when that is in the way.
    fn unprotected(&self, name: &str, once: impl Fn() -> io::Result<()>) -> io::Result<()> {
        match once() {
            Err(error) if error.raw_os_error() == Some(nix::libc::EPERM) => {
                inode_flags::clear_immutable(&File::open(self.path(name))?)?;
                once()
            }
            done => done,
        }
    }
}

impl Variables for Efivarfs {
    fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.dir)? {
            let file = entry?.file_name();
            let name = file.to_str().and_then(|f| f.strip_suffix(GLOBAL)).and_then(|f| f.strip_suffix('-'));
            names.extend(name.map(str::to_owned));
        }
        Ok(names)
    }

    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        let file = match File::open(self.path(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        let mut bytes = Vec::new();
        file.take(MAX).read_to_end(&mut bytes)?;
        // Four bytes of attributes come first.
        Ok(bytes.get(4..).map(<[u8]>::to_vec))
    }

    fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let content = [&ATTRIBUTES.to_le_bytes(), bytes].concat();
        self.unprotected(name, || {
            // Each write sets the variable, so it takes exactly one.
            let written = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(false)
                .open(self.path(name))?
                .write(&content)?;
            if written == content.len() { Ok(()) } else { Err(io::Error::from(io::ErrorKind::WriteZero)) }
        })
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.unprotected(name, || fs::remove_file(self.path(name)))
    }
}
