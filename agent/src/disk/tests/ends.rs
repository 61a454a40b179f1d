//! What is found at the ends of a disk, and that wiping leaves none of it.

use std::io;

use super::tables::{table, with_second};
use crate::disk::memory::Memory;
use crate::disk::wipe::{clear, wipe};
use crate::disk::{BlockDevice, signatures};

#[test]
fn every_mark_is_found_where_its_maker_puts_it_and_gone_after_a_wipe() {
    // Not a multiple of 64 KiB, so that aligned places differ from counted ones.
    let size = 5 * 1024 * 1024 + 9 * 512;
    let places: [(&str, usize, &[u8]); 15] = [
        ("MBR", 510, &[0x55, 0xaa]),
        ("GPT", 512, b"EFI PART"),
        ("GPT", 4096, b"EFI PART"),
        ("GPT backup", size - 512, b"EFI PART"),
        ("ext", 1080, &[0x53, 0xef]),
        ("xfs", 0, b"XFSB"),
        ("btrfs", 65600, b"_BHRfS_M"),
        ("vfat", 82, b"FAT32   "),
        ("LVM2", 512, b"LABELONE"),
        ("md 0.90", 5 * 1024 * 1024 - 65536, &[0xfc, 0x4e, 0x2b, 0xa9]),
        ("md 1.0", 5 * 1024 * 1024 + 4096 - 8192, &[0xfc, 0x4e, 0x2b, 0xa9]),
        ("md 1.2", 4096, &[0xfc, 0x4e, 0x2b, 0xa9]),
        ("swap", 4086, b"SWAPSPACE2"),
        ("ZFS", 128 << 10, &0x00ba_b10c_u64.to_le_bytes()),
        ("ZFS", (5 << 20) - (128 << 10) + 3072, &0x00ba_b10c_u64.to_be_bytes()),
    ];
    for (name, at, mark) in places {
        let mut bytes = vec![0x11; size];
        bytes[at..at + mark.len()].copy_from_slice(mark);
        let disk = Memory::new(bytes, 512);
        assert_eq!(signatures(&disk).unwrap(), [name], "at {at}");
        wipe(&disk).unwrap();
        assert_eq!(signatures(&disk).unwrap(), [""; 0], "{name}");
        let bytes = disk.into_bytes();
        assert!(bytes[1 << 20..size - (1 << 20)].iter().all(|b| *b == 0x11), "only the ends are wiped");
    }
}

#[test]
fn tiny_disks_are_wiped_whole() {
    for size in [512, 4096, 1 << 20, (1 << 20) + 512] {
        let disk = Memory::new(vec![0x11; size], 512);
        wipe(&disk).unwrap();
        assert!(disk.into_bytes().iter().all(|b| *b == 0), "{size}");
    }
}

#[test]
fn clearing_reaches_the_ends_of_the_partitions_that_were_there() {
    // A disk of 64 MiB, partitions in the middle of it: an array member and a volume.
    let (first, last) = (24 * 2048, 26 * 2048 - 1);
    let mut bytes = vec![0x11; 64 << 20];
    let head = with_second(table(64 * 2048, 23 * 2048 - 1), 2, first, last);
    bytes[..head.len()].copy_from_slice(&head);
    let at = |lba: u64| usize::try_from(lba * 512).unwrap();
    bytes[at(first) + 512..at(first) + 520].copy_from_slice(b"LABELONE");
    let superblock = at(last + 1) - 8192;
    bytes[superblock..superblock + 4].copy_from_slice(&[0xfc, 0x4e, 0x2b, 0xa9]);
    let disk = Memory::new(bytes, 512);
    clear(&disk).unwrap();
    let bytes = disk.into_bytes();
    let zero = |range: std::ops::Range<usize>| bytes[range].iter().all(|b| *b == 0);
    assert!(zero(at(first)..at(last + 1)), "a partition of two MiB is cleared whole");
    assert!(zero(0..4 << 20) && zero(60 << 20..64 << 20));
    assert!(zero(at(23 * 2048) - (1 << 20)..at(23 * 2048)), "the end of the first partition");
    assert!(bytes[30 << 20..60 << 20].iter().all(|b| *b == 0x11), "what is in no partition stays");
}

#[test]
fn clearing_follows_an_mbr_and_minds_no_nonsense() {
    let mut bytes = vec![0x11; 32 << 20];
    bytes[440..512].fill(0);
    bytes[510..512].copy_from_slice(&[0x55, 0xaa]);
    let mut entry = |index: usize, kind: u8, first: u32, sectors: u32| {
        let at = 446 + index * 16;
        bytes[at + 4] = kind;
        bytes[at + 8..at + 12].copy_from_slice(&first.to_le_bytes());
        bytes[at + 12..at + 16].copy_from_slice(&sectors.to_le_bytes());
    };
    entry(0, 0x83, 10 * 2048, 2048);
    // Beyond the disk, empty, and beyond what 32 bits can add.
    entry(1, 0x83, 40 * 2048, 2048);
    entry(2, 0x83, 12 * 2048, 0);
    entry(3, 0xfd, 15 * 2048, u32::MAX);
    let disk = Memory::new(bytes, 512);
    clear(&disk).unwrap();
    let bytes = disk.into_bytes();
    assert!(bytes[10 << 20..11 << 20].iter().all(|b| *b == 0));
    assert!(bytes[12 << 20..15 << 20].iter().all(|b| *b == 0x11));
    assert!(bytes[15 << 20..16 << 20].iter().all(|b| *b == 0));
}

/// A disk with one sector that cannot be written.
struct Bad {
    disk: Memory,
    at: u64,
}

impl BlockDevice for Bad {
    fn name(&self) -> &str {
        self.disk.name()
    }

    fn size(&self) -> u64 {
        self.disk.size()
    }

    fn logical_sector(&self) -> u32 {
        self.disk.logical_sector()
    }

    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<usize> {
        if (offset..offset + data.len() as u64).contains(&self.at) {
            return Err(io::Error::from_raw_os_error(nix::libc::EIO));
        }
        self.disk.write_at(data, offset)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.disk.read_at(buffer, offset)
    }

    fn flush(&self) -> io::Result<()> {
        Ok(())
    }

    fn forget_cache(&self) -> io::Result<()> {
        Ok(())
    }

    fn reread_partitions(&self) -> io::Result<()> {
        Ok(())
    }

    fn add_partition(&self, _: u64, _: u64, _: u64) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_bad_sector_is_told_of_and_keeps_no_boot_record_alive() {
    let size = 8 << 20;
    for at in [512 * 1024, 9000, size - 600_000] {
        let mut bytes = vec![0x11; 8 << 20];
        bytes[510..512].copy_from_slice(&[0x55, 0xaa]);
        bytes[512..520].copy_from_slice(b"EFI PART");
        bytes[(8 << 20) - 512..][..8].copy_from_slice(b"EFI PART");
        let disk = Bad { disk: Memory::new(bytes, 512), at };
        assert!(wipe(&disk).is_err_and(|error| error.to_string().starts_with("writing /dev/mem at byte")));
        assert_eq!(signatures(&disk).unwrap(), [""; 0], "bad at {at}");
    }
}
