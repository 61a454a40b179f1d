//! What a disk holds after a run: the image and nothing else, or nothing that boots.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};

use crate::partitions::{self, Found, MIB, Sector};

/// Bytes of the entries of a GPT.
const ENTRIES: u64 = 16 << 10;

/// Checks that `disk` holds the bytes of `image` everywhere but in the partition `apart` and in the partition
/// table's headers, and that both of those headers are valid and list the same partitions.
///
/// The headers alone may differ: a table has its second half at the end of the disk, which is not where the
/// image ended.
///
/// # Errors
/// The first offset at which they differ.
pub fn holds_image(disk: &Path, image: &Path, sector: Sector, apart: &str) -> Result<()> {
    let expected = partitions::read(image, sector)?;
    let found = partitions::read(disk, sector)?;
    ensure!(expected == found, "the disk has partitions {found:?}, the image {expected:?}");
    let apart = part(&expected, apart)?;
    let disk_file = File::open(disk)?;
    let image_file = File::open(image)?;
    // The backup of a GPT is its entries and one header.
    let end = image_file.metadata()?.len() - ENTRIES - sector.bytes();
    // Sector 0 carries the disk's size, sector 1 the place of the backup; the entries begin with sector 2.
    for (start, stop) in [(0, 440), (2 * sector.bytes(), apart.start), (apart.start + apart.len, end)] {
        if let Some(at) = first_difference(&disk_file, &image_file, start, stop)? {
            bail!("the disk differs from the image at byte {at}");
        }
    }
    Ok(())
}

/// The partition of that name.
///
/// # Errors
/// When there is none.
pub fn part(parts: &[Found], name: &str) -> Result<Found> {
    parts.iter().find(|part| part.name == name).cloned().with_context(|| format!("no partition {name}"))
}

/// Checks that no firmware would boot from `disk`: no partition table of either kind, no boot sector.
///
/// # Errors
/// What was found.
pub fn boots_nothing(disk: &Path) -> Result<()> {
    let file = File::open(disk)?;
    let len = file.metadata()?.len();
    let bytes = |at: u64| -> Result<[u8; 512]> {
        let mut bytes = [0; 512];
        file.read_exact_at(&mut bytes, at).context("read the disk")?;
        Ok(bytes)
    };
    for sector in [Sector::B512, Sector::B4096].map(Sector::bytes) {
        ensure!(!bytes(sector)?.starts_with(b"EFI PART"), "there is a GPT");
        ensure!(!bytes(len - sector)?.starts_with(b"EFI PART"), "there is a backup GPT");
    }
    ensure!(!bytes(0)?.ends_with(&[0x55, 0xaa]), "there is a boot sector");
    ensure!(first_data(&file, 0, MIB)?.is_none(), "the first MiB is not empty");
    Ok(())
}

/// Checks that nothing at all was written to `disk`.
///
/// # Errors
/// The first offset at which something was.
pub fn untouched(disk: &Path) -> Result<()> {
    let file = File::open(disk)?;
    let len = file.metadata()?.len();
    if let Some(at) = first_data(&file, 0, len)? {
        bail!("something was written at byte {at}");
    }
    Ok(())
}

fn first_data(file: &File, start: u64, stop: u64) -> Result<Option<u64>> {
    scan(start, stop, |at, len| {
        let mut bytes = vec![0; len];
        file.read_exact_at(&mut bytes, at)?;
        Ok(bytes.iter().position(|byte| *byte != 0))
    })
}

fn first_difference(one: &File, other: &File, start: u64, stop: u64) -> Result<Option<u64>> {
    scan(start, stop, |at, len| {
        let (mut a, mut b) = (vec![0; len], vec![0; len]);
        one.read_exact_at(&mut a, at).context("read the disk")?;
        other.read_exact_at(&mut b, at).context("read the image")?;
        Ok(if a == b { None } else { a.iter().zip(&b).position(|(a, b)| a != b) })
    })
}

fn scan(
    start: u64,
    stop: u64,
    mut look: impl FnMut(u64, usize) -> Result<Option<usize>>,
) -> Result<Option<u64>> {
    let mut at = start;
    while at < stop {
        let len = usize::try_from((stop - at).min(MIB))?;
        if let Some(offset) = look(at, len)? {
            return Ok(Some(at + offset as u64));
        }
        at += len as u64;
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, OpenOptions};
    use std::process::Command;

    use super::*;
    use crate::synthetic::{Oem, image};
    use crate::tool;

    #[test]
    fn a_disk_that_holds_the_image_is_told_from_one_that_does_not() {
        let dir = tempfile::tempdir().unwrap();
        let image = image(&dir.path().join("image.raw"), 2, Oem::Present).unwrap();
        let disk = dir.path().join("disk.raw");
        fs::copy(&image, &disk).unwrap();
        let file = OpenOptions::new().write(true).open(&disk).unwrap();
        file.set_len(16 * MIB).unwrap();
        assert!(
            holds_image(&disk, &image, Sector::B512, "oem").is_err(),
            "the backup table is not at the end"
        );
        tool::run(Command::new("sfdisk").args(["--relocate", "gpt-bak-std"]).arg(&disk)).unwrap();
        holds_image(&disk, &image, Sector::B512, "oem").unwrap();
        let oem = part(&partitions::read(&disk, Sector::B512).unwrap(), "oem").unwrap();
        file.write_all_at(b"planted", oem.start + 4096).unwrap();
        holds_image(&disk, &image, Sector::B512, "oem").unwrap();
        file.write_all_at(b"!", MIB + 12345).unwrap();
        let error = holds_image(&disk, &image, Sector::B512, "oem").unwrap_err().to_string();
        assert!(error.contains(&(MIB + 12345).to_string()), "{error}");
    }

    #[test]
    fn only_a_disk_without_tables_boots_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let disk = image(&dir.path().join("disk.raw"), 2, Oem::Present).unwrap();
        assert!(boots_nothing(&disk).is_err());
        let file = OpenOptions::new().write(true).open(&disk).unwrap();
        file.write_all_at(&vec![0; usize::try_from(MIB).unwrap()], 0).unwrap();
        assert!(boots_nothing(&disk).is_err(), "the backup table is still there");
        let len = file.metadata().unwrap().len();
        file.write_all_at(&[0; 33 * 512], len - 33 * 512).unwrap();
        boots_nothing(&disk).unwrap();
        assert!(untouched(&disk).is_err());
    }
}
