//! Which file system a partition holds and what it is labelled, told from its first bytes.

mod btrfs;
mod ext;
mod fat;

use std::fmt;

/// Bytes of a partition that tell: as far as the superblock of btrfs reaches.
pub(super) const HEAD: usize = btrfs::HEAD;

/// The file systems a seed can be planted on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// ext2, ext3 or ext4.
    Ext,
    /// FAT12, FAT16 or FAT32.
    Fat,
    /// btrfs.
    Btrfs,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ext => "ext",
            Self::Fat => "FAT",
            Self::Btrfs => "btrfs",
        })
    }
}

/// A file system as it shows itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FileSystem {
    pub(super) kind: Kind,
    /// Empty when it has none.
    pub(super) label: String,
    /// The largest sector, in bytes, of a disk it can be used on; [`None`] where it does not say.
    pub(super) sector: Option<u32>,
}

/// What the partition that starts with these bytes holds; fewer than [`HEAD`] where it is smaller. [`None`] when it
/// is none of ours.
pub(super) fn probe(head: &[u8]) -> Option<FileSystem> {
    let ext = ext::read(head).map(|e| FileSystem { kind: Kind::Ext, label: e.label, sector: e.block });
    let btrfs = || Some(FileSystem { kind: Kind::Btrfs, label: btrfs::label(head)?, sector: None });
    let fat = || {
        let fat = fat::read(head)?;
        Some(FileSystem { kind: Kind::Fat, label: fat.label, sector: Some(fat.sector) })
    };
    // FAT last: what makes it is the least distinctive, and old boot code survives a new file system.
    ext.or_else(btrfs).or_else(fat)
}

/// A field of fixed length up to its first zero.
fn text(field: &[u8]) -> String {
    let end = field.iter().position(|b| *b == 0).unwrap_or(field.len());
    String::from_utf8_lossy(&field[..end]).into_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn put(head: &mut [u8], at: usize, bytes: &[u8]) {
        head[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// A boot sector as `mkfs.vfat` writes it, the label given with its padding.
    fn fat(old: bool, sector: u16, label: &[u8; 11]) -> Vec<u8> {
        let mut head = vec![0; HEAD];
        put(&mut head, 0, &[0xeb, 0x3c, 0x90]);
        put(&mut head, 11, &sector.to_le_bytes());
        put(&mut head, 13, &[4, 4, 0, 2]);
        put(&mut head, 21, &[0xf8]);
        put(&mut head, if old { 0x26 } else { 0x42 }, &[0x29]);
        put(&mut head, if old { 0x2b } else { 0x47 }, label);
        put(&mut head, if old { 0x36 } else { 0x52 }, if old { b"FAT16   " } else { b"FAT32   " });
        put(&mut head, 510, &[0x55, 0xaa]);
        head
    }

    fn superblock(magic_at: usize, magic: &[u8], label_at: usize, label: &[u8]) -> Vec<u8> {
        let mut head = vec![0; HEAD];
        put(&mut head, magic_at, magic);
        put(&mut head, label_at, label);
        head
    }

    #[test]
    fn each_kind_is_told_with_its_label() {
        let ext = superblock(0x438, &[0x53, 0xef], 0x478, b"COS_OEM");
        let long = superblock(0x438, &[0x53, 0xef], 0x478, &[b'x'; 16]);
        let btrfs = superblock(0x10040, b"_BHRfS_M", 0x1012b, b"OEM");
        for (head, kind, label, sector) in [
            (ext, Kind::Ext, "COS_OEM", Some(1024)),
            (long, Kind::Ext, "xxxxxxxxxxxxxxxx", Some(1024)),
            (btrfs, Kind::Btrfs, "OEM", None),
            (fat(true, 512, b"CIDATA     "), Kind::Fat, "CIDATA", Some(512)),
            (fat(false, 4096, b"cidata     "), Kind::Fat, "cidata", Some(4096)),
            (fat(false, 512, b"NO NAME    "), Kind::Fat, "", Some(512)),
        ] {
            assert_eq!(probe(&head), Some(FileSystem { kind, label: label.to_owned(), sector }));
        }
    }

    #[test]
    fn what_is_none_of_these_is_told_as_none() {
        assert_eq!(probe(&[]), None);
        assert_eq!(probe(&vec![0; HEAD]), None);
        assert_eq!(probe(&superblock(0x438, &[0x53, 0xee], 0x478, b"COS_OEM")), None);
        assert_eq!(probe(&fat(true, 500, b"CIDATA     ")), None, "no sector has 500 bytes");
        // A master boot record ends with the same mark.
        assert_eq!(probe(&superblock(510, &[0x55, 0xaa], 0, &[])), None);
    }

    #[test]
    fn a_partition_smaller_than_a_head_is_told_by_what_there_is() {
        assert_eq!(probe(&fat(true, 512, b"CIDATA     ")[..512]).map(|f| f.label).as_deref(), Some("CIDATA"));
    }

    proptest! {
        #[test]
        fn any_bytes_are_looked_at_without_a_fault(bytes in prop::collection::vec(any::<u8>(), 0..1200)) {
            let _ = probe(&bytes);
        }
    }
}
