//! Partition tables: refused when unsound, whatever they hold, without a panic.

use proptest::prelude::*;

use crate::disk::gpt::Gpt;
use crate::disk::memory::Memory;
use crate::disk::table::{Extent, Table, TableError};

/// A table for a disk of `sectors`, with one partition from 64 to `last`.
pub(super) fn table(sectors: u64, last: u64) -> Vec<u8> {
    let mut head = vec![0; 34 * 512];
    head[450] = 0xee;
    head[454] = 1;
    head[458..462].copy_from_slice(&u32::MAX.to_le_bytes());
    head[510..512].copy_from_slice(&[0x55, 0xaa]);
    let entry = &mut head[1024..1024 + 128];
    entry[..32].fill(7);
    entry[32..40].copy_from_slice(&64_u64.to_le_bytes());
    entry[40..48].copy_from_slice(&last.to_le_bytes());
    let entries = crc(&head[1024..]);
    let header = &mut head[512..604];
    header[..8].copy_from_slice(b"EFI PART");
    header[8..12].copy_from_slice(&0x1_0000_u32.to_le_bytes());
    header[12..16].copy_from_slice(&92_u32.to_le_bytes());
    for (at, value) in [(24, 1), (32, sectors - 1), (40, 34), (48, sectors - 34), (72, 2)] {
        header[at..at + 8].copy_from_slice(&value.to_le_bytes());
    }
    for (at, value) in [(80, 128), (84, 128), (88, entries)] {
        header[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }
    let sum = crc(header);
    header[16..20].copy_from_slice(&sum.to_le_bytes());
    head
}

fn crc(bytes: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum()
}

#[test]
fn a_table_fits_when_the_backup_has_room_behind_the_last_partition() {
    let head = table(2000, 1000);
    let gpt = Gpt::read(&head, 512).unwrap().unwrap();
    assert_eq!(gpt.partitions.iter().map(|entry| entry.number).collect::<Vec<_>>(), [1]);
    assert_eq!(Gpt::declared_size(&head), Some(2000 * 512));
    // One sector of header and 32 of entries behind sector 1000.
    assert_eq!(gpt.check_fits(1034 * 512), Ok(()));
    let needed = 1034 * 512;
    assert_eq!(gpt.check_fits(1033 * 512), Err(TableError::TooLarge { needed, disk: 1033 * 512 }));
    assert!(gpt.check_holds(1001 * 512).is_ok() && gpt.check_holds(1001 * 512 - 1).is_err());
}

#[test]
fn completing_moves_the_backup_and_names_the_stale_one() {
    let mut head = table(2000, 1000);
    let gpt = Gpt::read(&head, 512).unwrap().unwrap();
    let backup = gpt.complete(&mut head, 5000 * 512).unwrap();
    assert_eq!(backup.offset, (5000 - 33) * 512);
    assert_eq!(backup.bytes.len(), 33 * 512);
    assert_eq!(backup.stale, Some(1999 * 512..2000 * 512));
    assert_eq!(head[458..462], 4999_u32.to_le_bytes(), "the protective MBR covers the disk");
    // The primary is sound again, and already complete.
    let again = Gpt::read(&head, 512).unwrap().unwrap().complete(&mut head, 5000 * 512).unwrap();
    assert_eq!((again.bytes, again.stale), (backup.bytes, None));
}

#[test]
fn a_table_for_other_sectors_is_told_apart_from_none() {
    let head = table(2000, 1000);
    assert_eq!(Gpt::read(&head, 4096), Err(TableError::SectorSize { image: 512, disk: 4096 }));
    assert_eq!(Gpt::read(&[0; 8192], 512), Ok(None));
}

/// `table(sectors, …)` with a second partition in these bounds, at this number.
pub(super) fn with_second(mut head: Vec<u8>, number: usize, first: u64, last: u64) -> Vec<u8> {
    let at = 1024 + (number - 1) * 128;
    head[at..at + 32].fill(9);
    head[at + 32..at + 40].copy_from_slice(&first.to_le_bytes());
    head[at + 40..at + 48].copy_from_slice(&last.to_le_bytes());
    seal(&mut head);
    head
}

/// Makes the checksums of a table right again.
pub(super) fn seal(head: &mut [u8]) {
    let entries = crc(&head[1024..34 * 512]);
    head[600..604].copy_from_slice(&entries.to_le_bytes());
    head[528..532].fill(0);
    let sum = crc(&head[512..604]);
    head[528..532].copy_from_slice(&sum.to_le_bytes());
}

#[test]
fn the_last_partition_grows_to_the_last_whole_mib_and_nothing_else_changes() {
    let mut head = with_second(table(20_000, 4000), 5, 6144, 10_000);
    let before = head.clone();
    let mut gpt = Gpt::read(&head, 512).unwrap().unwrap();
    gpt.grow_last().unwrap();
    // 50 MiB and a half: the backup's 33 sectors fit behind the whole ones.
    let backup = gpt.complete(&mut head, (50 << 20) + (1 << 19)).unwrap();
    let grown = Gpt::read(&head, 512).unwrap().expect("checksums hold");
    assert_eq!(grown.partitions[1].last, 50 * 2048 - 1);
    assert_eq!((grown.partitions[1].first, grown.partitions[0].last), (6144, 4000));
    let entries = 1024..34 * 512;
    let changed: Vec<usize> = entries.clone().filter(|at| head[*at] != before[*at]).collect();
    assert!(changed.iter().all(|at| (1024 + 4 * 128 + 40..1024 + 4 * 128 + 48).contains(at)), "{changed:?}");
    assert_eq!(backup.bytes[..32 * 512], head[entries], "the backup has the same entries");
    assert_eq!(backup.stale, Some(19_999 * 512..20_000 * 512), "the old backup header is gone all the same");
}

#[test]
fn a_partition_that_has_no_room_to_grow_stays_as_it_is() {
    // The last whole MiB before the backup table of this disk is behind sector 2047.
    let mut head = table(3000, 2500);
    let mut gpt = Gpt::read(&head, 512).unwrap().unwrap();
    gpt.grow_last().unwrap();
    gpt.complete(&mut head, 3000 * 512).unwrap();
    assert_eq!(Gpt::read(&head, 512).unwrap().unwrap().partitions[0].last, 2500);
}

#[test]
fn growing_is_refused_where_the_last_partition_is_not_the_last_on_the_disk_or_there_is_no_table() {
    let head = with_second(table(20_000, 10_000), 2, 40, 60);
    let mut gpt = Gpt::read(&head, 512).unwrap().unwrap();
    assert_eq!(gpt.grow_last(), Err(TableError::NotAtTheEnd { last: 2, behind: 1 }));
    let mut none = Table::read(&record(&[(0x83, 63, 100)]), 512).unwrap();
    assert_eq!(none.grow_last(), Err(TableError::NothingToGrow));
}

proptest! {
    #[test]
    fn a_grown_table_is_sound_on_any_disk(extra in 0_u64..1 << 30, wide in any::<bool>()) {
        let mut head = table(20_000, if wide { 19_000 } else { 4000 });
        let mut gpt = Gpt::read(&head, 512).unwrap().unwrap();
        gpt.grow_last().unwrap();
        let disk = (20_000 + extra) * 512;
        let backup = gpt.complete(&mut head, disk).unwrap();
        let grown = Gpt::read(&head, 512).unwrap().unwrap();
        let last = grown.partitions[0].last;
        prop_assert!((last + 1) * 512 <= backup.offset);
        prop_assert!(last == 19_000 || last == 4000 || (last + 1).is_multiple_of(2048));
        prop_assert!(grown.check_fits(disk).is_ok());
    }

    #[test]
    fn one_changed_bit_in_header_or_entries_is_noticed(at in 512..34 * 512_usize, bit in 0..8_u32) {
        let mut head = table(2000, 1000);
        // Behind the header's 92 bytes its sector is unused.
        prop_assume!(!(604..1024).contains(&at));
        head[at] ^= 1 << bit;
        prop_assert!(!matches!(Gpt::read(&head, 512), Ok(Some(_))));
    }

    #[test]
    fn any_header_with_a_right_checksum_is_read_without_a_panic(
        fields in proptest::collection::vec(any::<u8>(), 72),
        size in any::<u64>(),
    ) {
        let mut head = table(2000, 1000);
        head[512 + 20..604].copy_from_slice(&fields);
        head[512 + 24..512 + 32].copy_from_slice(&1_u64.to_le_bytes());
        head[528..532].fill(0);
        let sum = crc(&head[512..604]);
        head[528..532].copy_from_slice(&sum.to_le_bytes());
        if let Ok(Some(gpt)) = Gpt::read(&head, 512) {
            let _ = gpt.complete(&mut head, size);
        }
    }

    #[test]
    fn any_partition_bounds_and_disk_size_are_judged_without_a_panic(
        sectors in 1_u64.., last in any::<u64>(), size in any::<u64>(),
    ) {
        let mut head = table(sectors.max(34), last);
        if let Ok(Some(gpt)) = Gpt::read(&head, 512) {
            let _ = Gpt::declared_size(&head);
            let size = size % (1 << 50);
            let last_of = |size| gpt.extents(size).first().map(|extent| extent.last);
            // On disks too small for anything, too.
            prop_assert_eq!([last_of(size), last_of(size % 4096), last_of(0)], [Some(last); 3]);
            if gpt.check_fits(size).is_ok() {
                let backup = gpt.complete(&mut head, size).unwrap();
                prop_assert_eq!(backup.offset + backup.bytes.len() as u64, size / 512 * 512);
                prop_assert!(backup.offset > last.saturating_mul(512));
            }
        }
    }
}

/// A boot record with these entries: type, first sector, sectors.
fn record(entries: &[(u8, u32, u32)]) -> Vec<u8> {
    let mut head = vec![0; 512];
    head[510..512].copy_from_slice(&[0x55, 0xaa]);
    for (index, (kind, first, sectors)) in entries.iter().enumerate() {
        let at = 446 + index * 16;
        head[at + 4] = *kind;
        head[at + 8..at + 12].copy_from_slice(&first.to_le_bytes());
        head[at + 12..at + 16].copy_from_slice(&sectors.to_le_bytes());
    }
    head
}

/// Number, first and last sector of each partition of a disk that begins with this record.
fn shown(head: &[u8], disk: Vec<u8>) -> Vec<(u64, u64, u64)> {
    let table = Table::read(head, 512).unwrap();
    let partitions = table.partitions(&Memory::new(disk, 512)).unwrap();
    partitions.into_iter().map(|Extent { number, first, last, .. }| (number, first, last)).collect()
}

#[test]
fn a_boot_record_has_the_partitions_that_linux_shows() {
    let head = record(&[(0x83, 63, 100), (0x83, 200, 0), (0, 300, 100), (0xef, 0, 8)]);
    assert_eq!(shown(&head, Vec::new()), [(1, 63, 162), (4, 0, 7)], "not the empty ones");
    // What stands there in the boot sector of a file system is code.
    let mut code = head;
    code[446 + 32] = 0x33;
    assert_eq!(shown(&code, Vec::new()), []);
    code[446 + 32] = 0x80;
    assert_eq!(shown(&code, Vec::new()).len(), 2);
}

#[test]
fn partitions_inside_an_extended_one_are_followed_and_a_circle_ends() {
    let head = record(&[(0x83, 1, 9), (0x0f, 10, 100)]);
    let mut disk = vec![0; 200 * 512];
    let put = |disk: &mut Vec<u8>, at: usize, record: Vec<u8>| {
        disk[at * 512..(at + 1) * 512].copy_from_slice(&record);
    };
    put(&mut disk, 10, record(&[(0x83, 2, 20), (0x05, 40, 60)]));
    put(&mut disk, 50, record(&[(0x82, 3, 30)]));
    assert_eq!(shown(&head, disk.clone()), [(1, 1, 9), (2, 10, 10), (5, 12, 31), (6, 53, 82)]);
    put(&mut disk, 50, record(&[(0x82, 3, 30), (0x05, 0, 60)]));
    assert!(shown(&head, disk.clone()).len() < 70);
    // One that leads off the disk ends as well.
    put(&mut disk, 50, record(&[(0x82, 3, 30), (0x05, u32::MAX, 60)]));
    assert_eq!(shown(&head, disk).len(), 4);
}

#[test]
fn a_record_is_held_against_the_disk_and_the_image() {
    let head = record(&[(0x83, 64, 1000), (0x82, 2000, 48)]);
    let check = |sector, disk, image| {
        let table = Table::read(&head, sector).unwrap();
        table.check_fits(disk).and_then(|()| table.check_holds(image))
    };
    let end = 2048 * 512;
    assert_eq!(check(512, end, end), Ok(()));
    assert_eq!(check(512, end - 1, end), Err(TableError::TooLarge { needed: end, disk: end - 1 }));
    assert_eq!(
        check(512, end, end - 1),
        Err(TableError::Damaged { what: "the image ends inside a partition" })
    );
    // Nothing in the record says for which sectors it was made, but where its partitions end does.
    let other = Err(TableError::SectorSize { image: 512, disk: 4096 });
    assert_eq!([check(4096, end, end), check(4096, 8 * end, end)], [other.clone(), other]);
    assert_eq!(check(4096, 8 * end, 8 * end), Ok(()));
}

#[test]
fn a_gpt_and_its_protective_record_come_together_or_not_at_all() {
    let sound = table(2000, 1000);
    assert!(matches!(Table::read(&sound, 512), Ok(Table::Gpt(_))));
    for (at, byte) in [(510, 0), (450, 0x83), (454, 2)] {
        let mut head = sound.clone();
        head[at] = byte;
        assert!(matches!(Table::read(&head, 512), Err(TableError::Damaged { .. })), "{at}");
    }
    let mut headless = sound;
    headless[512] ^= 1;
    let expected = Err(TableError::Damaged { what: "no GPT behind the protective MBR" });
    assert_eq!(Table::read(&headless, 512), expected);
}

#[test]
fn a_partition_over_the_table_is_refused() {
    for (first, sound) in [(0, false), (1, false), (2, false), (33, false), (34, true)] {
        let head = with_second(table(2000, 1000), 2, first, 40);
        assert_eq!(Gpt::read(&head, 512).is_ok(), sound, "{first}");
    }
}

#[test]
fn a_protective_entry_among_others_keeps_its_place() {
    for (kind, sectors) in [(0, 4999), (0x0c, 63)] {
        let mut head = table(2000, 1000);
        head[458..462].copy_from_slice(&63_u32.to_le_bytes());
        head[446 + 16 + 4] = kind;
        head[446 + 16 + 8] = 64;
        head[446 + 16 + 12] = 100;
        Gpt::read(&head, 512).unwrap().unwrap().complete(&mut head, 5000 * 512).unwrap();
        assert_eq!(head[458..462], u32::to_le_bytes(sectors), "another of type {kind}");
    }
}
