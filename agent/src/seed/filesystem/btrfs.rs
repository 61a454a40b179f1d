//! The first superblock of btrfs (`include/uapi/linux/btrfs_tree.h`).

/// Where it begins, in bytes.
const SUPERBLOCK: usize = 64 << 10;
const MAGIC: usize = SUPERBLOCK + 0x40;
const LABEL: usize = SUPERBLOCK + 0x12b;
const LABEL_LEN: usize = 256;
/// Bytes of a partition that hold all of this.
pub(super) const HEAD: usize = SUPERBLOCK + 4096;

/// The label of the file system that starts with these bytes; [`None`] when it is no btrfs.
pub(super) fn label(head: &[u8]) -> Option<String> {
    if head.get(MAGIC..MAGIC + 8)? != b"_BHRfS_M" {
        return None;
    }
    head.get(LABEL..LABEL + LABEL_LEN).map(super::text)
}
