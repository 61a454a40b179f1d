//! What is found at the ends of a disk, and that wiping leaves none of it.

use std::io;
use std::sync::Mutex;

use crate::disk::wipe::wipe;
use crate::disk::{BlockDevice, signatures};

/// A disk in memory.
struct Memory(Mutex<Vec<u8>>);

impl BlockDevice for Memory {
    fn name(&self) -> &str {
        "/dev/mem"
    }

    fn size(&self) -> u64 {
        self.0.lock().unwrap().len() as u64
    }

    fn logical_sector(&self) -> u32 {
        512
    }

    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<usize> {
        let at = usize::try_from(offset).unwrap();
        self.0.lock().unwrap()[at..at + data.len()].copy_from_slice(data);
        Ok(data.len())
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let at = usize::try_from(offset).unwrap();
        buffer.copy_from_slice(&self.0.lock().unwrap()[at..at + buffer.len()]);
        Ok(buffer.len())
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
}

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
        let disk = Memory(Mutex::new(bytes));
        assert_eq!(signatures(&disk).unwrap(), [name], "at {at}");
        wipe(&disk).unwrap();
        assert_eq!(signatures(&disk).unwrap(), [""; 0], "{name}");
        let bytes = disk.0.into_inner().unwrap();
        assert!(bytes[1 << 20..size - (1 << 20)].iter().all(|b| *b == 0x11), "only the ends are wiped");
    }
}

#[test]
fn tiny_disks_are_wiped_whole() {
    for size in [512, 4096, 1 << 20, (1 << 20) + 512] {
        let disk = Memory(Mutex::new(vec![0x11; size]));
        wipe(&disk).unwrap();
        assert!(disk.0.into_inner().unwrap().iter().all(|b| *b == 0), "{size}");
    }
}
