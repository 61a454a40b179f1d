//! What other disks have in common with the one just installed, and what members they hold.

use proptest::prelude::*;

use super::tables::{seal, table, with_second};
use crate::disk::Inventory;
use crate::disk::memory::Memory;

const MIB: usize = 1 << 20;

fn take(bytes: Vec<u8>) -> Inventory {
    Inventory::take(&Memory::new(bytes, 512)).unwrap()
}

/// A disk of 16 MiB with partitions at 2..4 MiB and 6..8 MiB. GUIDs of disk and partitions are made of `id`.
fn disk(id: u8) -> Vec<u8> {
    let mut head = table(16 * 2048, 4 * 2048 - 1);
    head[1024 + 32..1024 + 40].copy_from_slice(&(2 * 2048_u64).to_le_bytes());
    head[512 + 56..512 + 72].fill(id);
    head[1024 + 16..1024 + 32].fill(id);
    let mut head = with_second(head, 2, 6 * 2048, 8 * 2048 - 1);
    head[1024 + 128 + 16..1024 + 128 + 32].fill(id.wrapping_add(1));
    seal(&mut head);
    let mut bytes = vec![0; 16 * MIB];
    bytes[..head.len()].copy_from_slice(&head);
    bytes
}

fn put(bytes: &mut [u8], at: usize, what: &[u8]) {
    bytes[at..at + what.len()].copy_from_slice(what);
}

fn ext(bytes: &mut [u8], at: usize, uuid: u8) {
    put(bytes, at + 1080, &[0x53, 0xef]);
    put(bytes, at + 1024 + 0x68, &[uuid; 16]);
}

#[test]
fn a_copy_of_the_installed_disk_is_noticed() {
    let mut installed = disk(1);
    ext(&mut installed, 6 * MIB, 0xaa);
    let text = take(installed.clone()).repeats(&take(installed)).unwrap();
    assert!(text.starts_with("/dev/mem: the disk has the disk identifier of the disk of"), "{text}");
    // Two partitions and a file system.
    assert!(text.contains("and 3 more such") && text.contains("wrong disk may be mounted"), "{text}");
}

#[test]
fn disks_that_have_nothing_in_common_are_no_matter() {
    let (mut a, mut b) = (disk(1), disk(0x51));
    ext(&mut a, 2 * MIB, 0xaa);
    ext(&mut b, 2 * MIB, 0xbb);
    assert_eq!(take(a).repeats(&take(b)), None);
    assert_eq!(take(vec![0; MIB]).repeats(&take(disk(1))), None);
}

#[test]
fn every_kind_of_file_system_is_told_by_its_identifier() {
    /// Kind, marks and their places, place and length of the identifier.
    type Kind = (&'static str, &'static [(usize, &'static [u8])], usize, usize);
    let marks: [Kind; 8] = [
        ("ext", &[(1080, &[0x53, 0xef])], 1024 + 0x68, 16),
        ("xfs", &[(0, b"XFSB")], 32, 16),
        ("btrfs", &[(0x1_0040, b"_BHRfS_M")], 0x1_0020, 16),
        ("vfat", &[(82, b"FAT32   ")], 67, 4),
        ("vfat", &[(54, b"FAT16   ")], 39, 4),
        ("swap", &[(4086, b"SWAPSPACE2")], 1036, 16),
        ("LUKS", &[(0, b"LUKS\xba\xbe")], 168, 36),
        ("LVM2", &[(512, b"LABELONE"), (512 + 20, &[32, 0, 0, 0])], 544, 32),
    ];
    for (kind, mark, at, len) in marks {
        // On a disk without a table, and in a partition of another with one.
        let mut bare = vec![0; 8 * MIB];
        let mut partitioned = disk(3);
        for (bytes, base) in [(&mut bare, 0), (&mut partitioned, 2 * MIB)] {
            for (place, what) in mark {
                put(bytes, base + place, what);
            }
            put(bytes, base + at, &vec![0x77; len]);
        }
        let text = take(bare.clone()).repeats(&take(partitioned.clone())).expect(kind);
        let expected = format!("the disk has the {kind} identifier of partition 1");
        assert!(text.contains(&expected), "{text}");
        // One byte of it different, or all of it absent: not the same.
        bare[at] = 0x78;
        assert_eq!(take(bare.clone()).repeats(&take(partitioned)), None, "{kind}");
        bare[at..at + len].fill(0);
        assert_eq!(take(bare.clone()).repeats(&take(bare)), None, "{kind}");
    }
}

#[test]
fn members_of_arrays_groups_and_pools_are_named_with_their_place() {
    let md = [0xfc, 0x4e, 0x2b, 0xa9];
    let zfs = 0x00ba_b10c_u64.to_le_bytes();
    let cases: [(&str, usize, &[u8]); 6] = [
        ("md 1.2 on partition 1", 2 * MIB + 4096, &md),
        ("md 1.0 on partition 1", 4 * MIB - 8192, &md),
        ("md 0.90 on partition 2", 8 * MIB - 65536, &md),
        ("LVM2 on partition 2", 6 * MIB + 512, b"LABELONE"),
        ("ZFS on partition 1", 2 * MIB + (128 << 10), &zfs),
        ("ZFS on partition 1", 4 * MIB - (128 << 10), &zfs),
    ];
    for (place, at, mark) in cases {
        let mut bytes = disk(1);
        put(&mut bytes, at, mark);
        let text = take(bytes).members().expect(place);
        assert_eq!(text, format!("/dev/mem holds {place}, which an installed system may assemble"));
    }
    let mut bare = vec![0; 4 * MIB];
    put(&mut bare, 512, b"LABELONE");
    assert!(take(bare).members().unwrap().contains("LVM2 on the disk"));
    assert_eq!(take(disk(1)).members(), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn any_bytes_are_looked_into_without_a_panic(
        places in proptest::collection::vec((0..4 * MIB - 64, proptest::collection::vec(any::<u8>(), 1..64)), 0..20),
        sealed in any::<bool>(),
    ) {
        let mut bytes = if sealed { disk(1)[..4 * MIB].to_vec() } else { vec![0; 4 * MIB] };
        put(&mut bytes, 512, b"LABELONE");
        for (at, what) in places {
            put(&mut bytes, at, &what);
        }
        let inventory = take(bytes);
        let _ = (inventory.members(), inventory.repeats(&inventory));
    }
}
