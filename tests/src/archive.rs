//! Compressed copies and digests of images.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use sha2::{Digest as _, Sha256};

/// Compresses a file beside itself as one zstd frame that carries its content size.
///
/// # Errors
/// When a file cannot be read or written.
pub fn zstd(raw: &Path) -> Result<PathBuf> {
    let out = with_suffix(raw, "zst");
    let mut source = File::open(raw).with_context(|| format!("open {}", raw.display()))?;
    let target = File::create(&out).with_context(|| format!("create {}", out.display()))?;
    let mut encoder = zstd::Encoder::new(target, 6)?;
    encoder.include_contentsize(true)?;
    encoder.set_pledged_src_size(Some(source.metadata()?.len()))?;
    io::copy(&mut source, &mut encoder).context("compress with zstd")?;
    encoder.finish()?;
    Ok(out)
}

/// Compresses a file beside itself as one gzip member.
///
/// # Errors
/// When a file cannot be read or written.
pub fn gzip(raw: &Path) -> Result<PathBuf> {
    let out = with_suffix(raw, "gz");
    let mut source = File::open(raw).with_context(|| format!("open {}", raw.display()))?;
    let target = File::create(&out).with_context(|| format!("create {}", out.display()))?;
    let mut encoder = flate2::write::GzEncoder::new(target, flate2::Compression::new(5));
    io::copy(&mut source, &mut encoder).context("compress with gzip")?;
    encoder.finish()?;
    Ok(out)
}

/// `sha256:` and the digest of a file.
///
/// # Errors
/// When the file cannot be read.
pub fn digest(path: &Path) -> Result<String> {
    let mut file = File::open(path).with_context(|| format!("open {}", path.display()))?;
    let mut hash = HashWriter(Sha256::new());
    io::copy(&mut file, &mut hash).with_context(|| format!("read {}", path.display()))?;
    Ok(format!("sha256:{}", hex::encode(hash.0.finalize())))
}

struct HashWriter(Sha256);

impl io::Write for HashWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(suffix);
    PathBuf::from(name)
}
