//! The image that is deployed: half of it allocated, as a fresh system on a disk is.

use std::fs::File;
use std::io::{BufWriter, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    Raw,
    Gzip,
    Zstd,
    Xz,
}

impl Format {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
            Self::Xz => "xz",
        }
    }

    /// What writes it. The levels are fast ones: how long compressing takes is not what is measured.
    fn compressor(self) -> Option<&'static str> {
        match self {
            Self::Raw => None,
            Self::Gzip => Some("gzip -4"),
            Self::Zstd => Some("zstd -q -T0 -3"),
            Self::Xz => Some("xz -T0 -1 --block-size=16MiB"),
        }
    }

    /// What decodes it in a shell.
    pub(crate) fn decompressor(self) -> Option<&'static str> {
        match self {
            Self::Raw => None,
            Self::Gzip => Some("gzip -dc"),
            Self::Zstd => Some("zstd -qdc"),
            Self::Xz => Some("xz -T0 -dc"),
        }
    }
}

pub(crate) struct Image {
    path: PathBuf,
    format: Format,
}

impl Image {
    /// Makes the raw image, unless it is there.
    pub(crate) fn raw(dir: &Path, size: u64) -> Result<Self> {
        let path = dir.join(format!("image-{}m", size >> 20));
        if !path.exists() {
            let partial = path.with_extension("partial");
            write_image(&partial, size)?;
            std::fs::rename(&partial, &path)?;
        }
        Ok(Self { path, format: Format::Raw })
    }

    /// The same in another format.
    pub(crate) fn in_format(&self, format: Format) -> Result<Self> {
        let path = self.path.with_extension(format.name());
        let Some(compressor) = format.compressor() else {
            return Ok(Self { path: self.path.clone(), format });
        };
        if !path.exists() {
            let partial = path.with_extension("partial");
            let line = format!("{compressor} -c {} > {}", self.path.display(), partial.display());
            let status = Command::new("bash").args(["-c", &line]).status()?;
            ensure!(status.success(), "{line}: {status}");
            std::fs::rename(&partial, &path)?;
        }
        Ok(Self { path, format })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn format(&self) -> Format {
        self.format
    }

    pub(crate) fn name(&self) -> &str {
        self.path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
    }
}

/// Every other 16 MiB hold data, one part of which does not compress and the rest compresses like programs do.
fn write_image(path: &Path, size: u64) -> Result<()> {
    const STRETCH: u64 = 16 << 20;
    let file = File::create(path).context("the image")?;
    file.set_len(size)?;
    let mut file = BufWriter::with_capacity(1 << 20, file);
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for start in (0..size).step_by(2 * usize::try_from(STRETCH)?) {
        file.seek(SeekFrom::Start(start))?;
        for word in 0..STRETCH.min(size - start) / 8 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            // Runs of 512 words: a third random, a third with few distinct bytes, a third words seen before.
            let value = match word / 512 % 3 {
                0 => state,
                1 => state & 0x0f0f_0303_0f03_0f0f,
                _ => (state & 0x3ff).wrapping_mul(0x0101_0000_0001_0001),
            };
            file.write_all(&value.to_le_bytes())?;
        }
    }
    // An MBR without partitions: the least that makes it a disk image.
    file.seek(SeekFrom::Start(446))?;
    file.write_all(&[0; 64])?;
    file.write_all(&[0x55, 0xaa])?;
    file.flush()?;
    Ok(())
}
