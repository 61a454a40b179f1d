//! A tiny image for runs that are to fail: a valid disk, with COS_OEM or without it, in a few megabytes.

use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::partitions::{Kind, Layout, MIB, Partition, ext4};

/// Whether the image has a place for user-data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Oem {
    /// A partition labelled COS_OEM.
    Present,
    /// The same partition under another label.
    Absent,
}

/// Makes an image of about `mib` mebibytes at `out`.
///
/// # Errors
/// When a tool fails.
pub fn image(out: &Path, mib: u64, oem: Oem) -> Result<PathBuf> {
    let parent = out.parent().context("an image has a directory")?;
    fs::create_dir_all(parent)?;
    let scratch = tempfile::tempdir_in(parent)?;
    let label = match oem {
        Oem::Present => "COS_OEM",
        Oem::Absent => "DATA",
    };
    let oem = ext4(&scratch.path().join("oem.ext4"), 4 * MIB, label, None)?;
    // Bytes that are zero nowhere and repeat nowhere near.
    let filler = scratch.path().join("filler");
    let mut bytes = BufWriter::new(File::create(&filler)?);
    let mut word = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..mib * MIB / 8 {
        word ^= word << 13;
        word ^= word >> 7;
        word ^= word << 17;
        bytes.write_all(&word.to_le_bytes())?;
    }
    bytes.flush()?;
    drop(bytes);
    let parts = vec![
        Partition { name: "esp", kind: Kind::Esp, content: filler },
        Partition { name: "oem", kind: Kind::Linux, content: oem },
    ];
    Layout { parts, ..Layout::default() }.write(out)?;
    Ok(out.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::partitions::{Sector, planted, read};

    #[test]
    fn the_image_has_a_valid_table_and_the_partition_that_was_asked_for() {
        let dir = tempfile::tempdir().unwrap();
        let image = image(&dir.path().join("tiny.raw"), 2, Oem::Present).unwrap();
        let parts = read(&image, Sector::B512).unwrap();
        let names: Vec<_> = parts.iter().map(|part| (part.name.as_str(), part.len / MIB)).collect();
        assert_eq!(names, [("esp", 2), ("oem", 4)]);
        assert!(planted(&image, &parts[1], "/99_beskar7.yaml").is_err());
    }
}
