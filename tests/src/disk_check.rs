//! What a disk holds after a run: the image and nothing else, or nothing that boots.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};

use crate::leftovers::Leftovers;
use crate::partitions::{self, Found, MIB, Sector};

/// Bytes of the entries of a GPT.
const ENTRIES: u64 = 16 << 10;
/// How much of the end of a disk the agent clears before it writes the image.
const CLEARED: u64 = 4 * MIB;
/// How much of both ends of a disk the agent clears when a run fails.
const WIPED: u64 = MIB;

/// Checks that `disk` holds the bytes of `image` everywhere but in the partition `apart` and in the partition
/// table's headers, that both of those headers are valid and list the same partitions, and that behind the image there
/// is nothing new but the second of them: what the disk held before, and zeros at its end.
///
/// The headers alone may differ: a table has its second half at the end of the disk, which is not where the
/// image ended.
///
/// # Errors
/// The first offset at which they differ.
pub fn holds_image(disk: &Path, image: &Path, sector: Sector, apart: &str, before: Leftovers) -> Result<()> {
    let expected = partitions::read(image, sector)?;
    let found = partitions::read(disk, sector)?;
    ensure!(expected == found, "the disk has partitions {found:?}, the image {expected:?}");
    let apart = part(&expected, apart)?;
    let disk_file = File::open(disk)?;
    let image_file = File::open(image)?;
    let (size, image_size) = (disk_file.metadata()?.len(), image_file.metadata()?.len());
    ensure!(size > image_size + CLEARED, "the disk has too little room behind the image to tell them apart");
    // The image's own second header, the last of it, is of no disk that is larger.
    let header = image_size - sector.bytes();
    // Sector 0 carries the disk's size, sector 1 the place of the backup; the entries begin with sector 2.
    for (start, stop) in [(0, 440), (2 * sector.bytes(), apart.start), (apart.start + apart.len, header)] {
        if let Some(at) = first_difference(&disk_file, &image_file, start, stop)? {
            bail!("the disk differs from the image at byte {at}");
        }
    }
    // The backup of a GPT is its entries and one header.
    let (cleared, backup) = (size - CLEARED, size - ENTRIES - sector.bytes());
    for (range, held) in [
        (header..image_size, Leftovers::None),
        (image_size..cleared, before),
        (cleared..backup, Leftovers::None),
    ] {
        holds(&disk_file, range, held).context("behind the image")?;
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

/// Checks that no firmware would boot from `disk`: no partition table of either kind, no boot sector, and zeros at both
/// ends.
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
    for range in [0..WIPED, len - WIPED..len] {
        holds(&file, range, Leftovers::None).context("the disk was not wiped at both ends")?;
    }
    Ok(())
}

/// Checks that `disk` holds what it held before, every byte.
///
/// # Errors
/// The first offset at which something was.
pub fn untouched(disk: &Path, before: Leftovers) -> Result<()> {
    let file = File::open(disk)?;
    let len = file.metadata()?.len();
    holds(&file, 0..len, before)
}

/// Checks a part of a disk against what it is to hold.
fn holds(disk: &File, range: Range<u64>, expected: Leftovers) -> Result<()> {
    let differs = scan(range.start, range.end, |at, len| {
        let (mut found, mut held) = (vec![0; len], vec![0; len]);
        disk.read_exact_at(&mut found, at).context("read the disk")?;
        expected.fill(at, &mut held);
        Ok(position_of_difference(&found, &held))
    })?;
    let Some(at) = differs else { return Ok(()) };
    bail!(
        "byte {at} is not as it must be there: {}",
        match expected {
            Leftovers::None => "zero",
            Leftovers::Marks => "as it was before the run",
        }
    )
}

fn first_difference(one: &File, other: &File, start: u64, stop: u64) -> Result<Option<u64>> {
    scan(start, stop, |at, len| {
        let (mut a, mut b) = (vec![0; len], vec![0; len]);
        one.read_exact_at(&mut a, at).context("read the disk")?;
        other.read_exact_at(&mut b, at).context("read the image")?;
        Ok(position_of_difference(&a, &b))
    })
}

/// Compared as a whole first, which takes a fraction of the time.
fn position_of_difference(a: &[u8], b: &[u8]) -> Option<usize> {
    if a == b { None } else { a.iter().zip(b).position(|(a, b)| a != b) }
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
    use std::path::PathBuf;
    use std::process::Command;

    use super::*;
    use crate::synthetic::{Oem, image};
    use crate::tool;

    /// A marked disk of 16 MiB with a small image on it, as the agent leaves it.
    fn installed(dir: &Path) -> (PathBuf, PathBuf) {
        let image = image(&dir.join("image.raw"), 2, Oem::Present).unwrap();
        let disk = dir.join("disk.raw");
        Leftovers::Marks.lay(&disk, SIZE).unwrap();
        let bytes = fs::read(&image).unwrap();
        write(&disk, 0, &bytes);
        write(&disk, SIZE - CLEARED, &vec![0; usize::try_from(CLEARED).unwrap()]);
        tool::run(Command::new("sfdisk").args(["--relocate", "gpt-bak-std"]).arg(&disk)).unwrap();
        write(&disk, bytes.len() as u64 - 512, &[0; 512]);
        (disk, image)
    }

    const SIZE: u64 = 16 * MIB;

    fn write(disk: &Path, at: u64, bytes: &[u8]) {
        OpenOptions::new().write(true).open(disk).unwrap().write_all_at(bytes, at).unwrap();
    }

    fn check(disk: &Path, image: &Path) -> Result<(), String> {
        holds_image(disk, image, Sector::B512, "oem", Leftovers::Marks).map_err(|error| format!("{error:#}"))
    }

    #[test]
    fn a_disk_that_holds_the_image_is_told_from_one_that_does_not() {
        let dir = tempfile::tempdir().unwrap();
        let (disk, image) = installed(dir.path());
        check(&disk, &image).unwrap();
        let oem = part(&partitions::read(&disk, Sector::B512).unwrap(), "oem").unwrap();
        write(&disk, oem.start + 4096, b"planted");
        check(&disk, &image).unwrap();
        write(&disk, MIB + 12345, b"!");
        let error = check(&disk, &image).unwrap_err();
        assert!(error.contains(&(MIB + 12345).to_string()), "{error}");
    }

    #[test]
    fn a_disk_without_the_second_table_at_its_end_does_not_hold_the_image() {
        let dir = tempfile::tempdir().unwrap();
        let (disk, image) = installed(dir.path());
        write(&disk, SIZE - 512, &[0; 512]);
        check(&disk, &image).unwrap_err();
    }

    #[test]
    fn what_was_written_behind_the_image_is_found_as_is_what_was_not_cleared_there() {
        let dir = tempfile::tempdir().unwrap();
        let (disk, image) = installed(dir.path());
        let end = fs::metadata(&image).unwrap().len();
        // A byte of a mark that is gone, one where there was none, one in what is cleared, one of the old header.
        for at in [end, end + MIB / 2, SIZE - CLEARED + 1, SIZE - 33 * 512 - 1, end - 512] {
            let whole = fs::read(&disk).unwrap();
            write(&disk, at, b"!");
            let error = check(&disk, &image).unwrap_err();
            assert!(error.contains("behind the image") && error.contains(&at.to_string()), "{error}");
            write(&disk, 0, &whole);
        }
        check(&disk, &image).unwrap();
    }

    #[test]
    fn only_a_disk_without_tables_and_with_empty_ends_boots_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let disk = image(&dir.path().join("disk.raw"), 2, Oem::Present).unwrap();
        assert!(boots_nothing(&disk).is_err());
        let mib = vec![0; usize::try_from(MIB).unwrap()];
        write(&disk, 0, &mib);
        assert!(boots_nothing(&disk).is_err(), "the backup table is still there");
        let len = fs::metadata(&disk).unwrap().len();
        write(&disk, len - MIB, &mib);
        boots_nothing(&disk).unwrap();
        write(&disk, len - MIB, b"!");
        assert!(boots_nothing(&disk).is_err(), "its end is not empty");
    }

    #[test]
    fn one_byte_that_changed_is_a_disk_that_was_touched() {
        let dir = tempfile::tempdir().unwrap();
        let disk = dir.path().join("disk.raw");
        Leftovers::Marks.lay(&disk, SIZE).unwrap();
        untouched(&disk, Leftovers::Marks).unwrap();
        assert!(untouched(&disk, Leftovers::None).is_err(), "a marked disk is not empty");
        for (at, byte) in [(SIZE - 1, 0), (SIZE / 2 + 9999, 1)] {
            write(&disk, at, &[byte]);
            let error = untouched(&disk, Leftovers::Marks).unwrap_err().to_string();
            assert!(error.contains(&at.to_string()), "{error}");
            Leftovers::Marks.lay(&disk, SIZE).unwrap();
        }
    }
}
