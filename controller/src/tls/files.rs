//! Keys and certificates on disk: where they are, how they are written, what is wrong with them.

use std::fs::{DirBuilder, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;

/// Largest PEM file read; a chain of a few certificates is some kilobytes.
const MAX_PEM: u64 = 256 << 10;

/// What can be wrong with TLS material.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file or folder cannot be read or written.
    #[error(
        "cannot {action} {path}: {source}; check that the data directory belongs to the user running farrier"
    )]
    Io {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// A file does not hold what it should.
    #[error("{path} is unusable: {problem}; replace it, or delete the tls folder to have a new CA made")]
    Unusable {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// Files that only make sense together are not all there.
    #[error("{dir} is incomplete: {problem}")]
    Incomplete {
        /// The folder.
        dir: PathBuf,
        /// What is missing and what to do.
        problem: &'static str,
    },
    /// Making a key or certificate failed.
    #[error("cannot make a certificate: {problem}")]
    Issue {
        /// What the maker said.
        problem: String,
    },
}

/// The folder with the four files.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    dir: PathBuf,
}

impl TlsFiles {
    /// The folder `dir`; nothing is touched yet.
    pub fn new(dir: PathBuf) -> Self {
        Self { dir }
    }

    /// The folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Certificate of the CA.
    pub fn ca_cert(&self) -> PathBuf {
        self.dir.join("ca.crt")
    }

    /// Key of the CA; absent when the operator brings their own certificate.
    pub fn ca_key(&self) -> PathBuf {
        self.dir.join("ca.key")
    }

    /// Serving certificate, with its intermediates if any.
    pub fn cert(&self) -> PathBuf {
        self.dir.join("tls.crt")
    }

    /// Key of the serving certificate.
    pub fn key(&self) -> PathBuf {
        self.dir.join("tls.key")
    }

    /// Makes the folder, readable by its owner alone.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn create_dir(&self) -> Result<(), TlsError> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.dir).map_err(|source| TlsError::Io {
            action: "make the folder",
            path: self.dir.clone(),
            source,
        })
    }

    /// The PEM bundle agents must trust: `ca.crt`, else `tls.crt`; empty files count as absent.
    ///
    /// # Errors
    /// When neither is there, or what is there holds no certificate.
    pub fn ca_bundle(&self) -> Result<Vec<u8>, TlsError> {
        for path in [self.ca_cert(), self.cert()] {
            if let Some(pem) = read(&path)? {
                certificates(&path, &pem)?;
                return Ok(pem);
            }
        }
        let problem = "it holds neither ca.crt nor tls.crt; put one there or delete the folder";
        Err(TlsError::Incomplete { dir: self.dir.clone(), problem })
    }
}

/// Reads a PEM file; `None` when it is absent or empty.
///
/// # Errors
/// When it exists and cannot be read, or is too large to be what it should.
pub fn read(path: &Path) -> Result<Option<Vec<u8>>, TlsError> {
    let io = |source| TlsError::Io { action: "read", path: path.to_owned(), source };
    match std::fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(io(error)),
        Ok(meta) if meta.len() > MAX_PEM => {
            let problem = format!("{} bytes, more than {MAX_PEM}", meta.len());
            return Err(TlsError::Unusable { path: path.to_owned(), problem });
        }
        Ok(_) => {}
    }
    let bytes = std::fs::read(path).map_err(io)?;
    Ok(Some(bytes).filter(|b| !b.iter().all(u8::is_ascii_whitespace)))
}

/// Replaces a file as a whole, readable by its owner alone, durable on return.
///
/// # Errors
/// When it cannot be written.
pub fn write(path: &Path, contents: &[u8]) -> Result<(), TlsError> {
    let io = |source| TlsError::Io { action: "write", path: path.to_owned(), source };
    let dir = path.parent().unwrap_or_else(|| Path::new("."));
    let mut file =
        tempfile::Builder::new().permissions(Permissions::from_mode(0o600)).tempfile_in(dir).map_err(io)?;
    file.write_all(contents).map_err(io)?;
    file.as_file().sync_all().map_err(io)?;
    file.persist(path).map_err(|e| io(e.error))?;
    OpenOptions::new()
        .read(true)
        .custom_flags(nix::libc::O_DIRECTORY)
        .open(dir)
        .and_then(|d| d.sync_all())
        .map_err(io)
}

/// The certificates in a PEM file, at least one.
///
/// # Errors
/// When it holds none, or one that does not decode.
pub fn certificates(path: &Path, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let unusable = |problem: String| TlsError::Unusable { path: path.to_owned(), problem };
    let certs = CertificateDer::pem_slice_iter(pem)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|e| unusable(format!("not PEM: {e}")))?;
    if certs.is_empty() { Err(unusable("no certificate in it".to_owned())) } else { Ok(certs) }
}
