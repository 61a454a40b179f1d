//! What disks hold and say of themselves.

use super::gpt::Gpt;
use super::inventory::Inventory;
use super::mbr::Mbr;
use super::memory::Memory;
use super::table::{Table, looks_partitioned};
use super::vpd::Pages;
use super::wipe::{clear, wipe};

/// The first bytes of an image, led by the disk they are for: one byte for its sector, eight for its size.
///
/// They are read as they are, and again with the checksums made right, which a fuzzer cannot guess.
pub fn partition_table(bytes: &[u8]) {
    let Some((lead, head)) = bytes.split_at_checked(9) else { return };
    let sector = if lead[0] & 1 == 0 { 512 } else { 4096 };
    let size = u64::from_le_bytes([lead[1], lead[2], lead[3], lead[4], lead[5], lead[6], lead[7], lead[8]]);
    let mut head = head.to_vec();
    for _ in 0..2 {
        let _ = (looks_partitioned(&head), Gpt::declared_size(&head));
        let mbr = Mbr::read(&head, sector);
        assert!(mbr.primaries().len() <= 4);
        assert!(mbr.extents().iter().all(|extent| 0 < extent.first && extent.first <= extent.last));
        if let Ok(table) = Table::read(&head, sector) {
            let disk = Memory::new(head.chunks_exact(sector as usize).flatten().copied().collect(), sector);
            let _ = (table.check_fits(size), table.check_holds(size));
            let partitions = table.partitions(&disk).expect("memory can be read");
            assert!(partitions.iter().all(|extent| extent.first <= extent.last), "{partitions:?}");
        }
        for grown in [false, true] {
            complete(&head, sector, size, grown);
        }
        make_checksums_right(&mut head, sector as usize);
    }
}

/// Completes the table, if it is one, and reads the result back.
fn complete(head: &[u8], sector: u32, size: u64, grown: bool) {
    let mut head = head.to_vec();
    let Ok(mut found) = Gpt::read(&head, sector) else { return };
    let Some(gpt) = &mut found else { return };
    if grown && gpt.grow_last().is_err() {
        return;
    }
    let _ = gpt.check_holds(size);
    let fits = gpt.check_fits(size);
    let Ok(backup) = gpt.complete(&mut head, size) else {
        assert!(fits.is_err(), "a table that fits is completed");
        return;
    };
    let sectors = size / u64::from(sector) * u64::from(sector);
    assert_eq!(backup.offset + backup.bytes.len() as u64, sectors, "the backup ends the disk");
    let again = Gpt::read(&head, sector).ok().flatten();
    let again = again.unwrap_or_else(|| panic!("a completed table is a sound one: {gpt:?}"));
    let numbers = |gpt: &Gpt| gpt.partitions.iter().map(|entry| entry.number).collect::<Vec<_>>();
    assert_eq!(numbers(&again), numbers(gpt));
    for (new, old) in again.partitions.iter().zip(&gpt.partitions) {
        assert_eq!((new.first, new.guid), (old.first, old.guid));
        assert!(new.last >= old.last && (grown || new.last == old.last));
    }
    assert_eq!(again.extents(size), gpt.extents(size), "partitions are shown as they will be");
    assert!(again.check_fits(size).is_ok(), "what was completed for a disk fits it");
}

fn make_checksums_right(head: &mut [u8], sector: usize) {
    let number = |head: &[u8], at: usize, len: usize| {
        head.get(at..at + len).map_or(0, |b| b.iter().rev().fold(0, |n, b| n << 8 | usize::from(*b)))
    };
    let put = |head: &mut [u8], at: usize, bytes: &[u8]| {
        let mut crc = flate2::Crc::new();
        crc.update(bytes);
        if let Some(field) = head.get_mut(at..at + 4) {
            field.copy_from_slice(&crc.sum().to_le_bytes());
        }
    };
    let start = number(head, sector + 72, 8).saturating_mul(sector);
    let length = number(head, sector + 80, 4).saturating_mul(number(head, sector + 84, 4));
    if let Some(entries) = head.get(start..start.saturating_add(length)).map(<[u8]>::to_vec) {
        put(head, sector + 88, &entries);
    }
    let size = number(head, sector + 12, 4).min(sector);
    if let Some(mut header) = head.get(sector..sector + size).map(<[u8]>::to_vec)
        && let Some(field) = header.get_mut(16..20)
    {
        field.fill(0);
        put(head, sector + 16, &header);
    }
}

/// A disk that begins with these bytes, and one that ends with them: what is found on them, and that nothing is
/// after a wipe.
pub fn signatures(bytes: &[u8]) {
    let size = bytes.len().next_multiple_of(4096).max(4096);
    for at in [0, size - bytes.len()] {
        let mut store = vec![0; size];
        store[at..at + bytes.len()].copy_from_slice(bytes);
        for sector in [512, 4096] {
            let disk = Memory::new(store.clone(), sector);
            super::signatures(&disk).expect("memory can be read");
            let held = Inventory::take(&disk).expect("memory can be read");
            let _ = (held.members(), held.repeats(&held));
            if sector == 512 { wipe(&disk) } else { clear(&disk) }.expect("memory can be wiped");
            assert_eq!(super::signatures(&disk).expect("memory can be read"), [""; 0]);
        }
    }
}

/// Pages of vital product data, split where the first two bytes say; also as the `wwid` of older kernels.
pub fn vpd(bytes: &[u8]) {
    let Some(([first, second], rest)) = bytes.split_first_chunk::<2>().map(|(lead, rest)| (*lead, rest))
    else {
        return;
    };
    let (serial, rest) = rest.split_at(usize::from(first).min(rest.len()));
    let (designators, ata) = rest.split_at((usize::from(second) * 4).min(rest.len()));
    let pages = Pages::of(serial, designators, ata, &String::from_utf8_lossy(bytes));
    let texts = [pages.serial(), pages.ata().map(|a| a.model + &a.serial)];
    let texts: Vec<String> = texts.into_iter().flatten().chain(pages.scsi_ids()).collect();
    assert!(texts.iter().all(|text| text.len() <= bytes.len() * 2 + 32 && !text.contains(char::is_control)));
}
