//! The superblock of ext2, ext3 and ext4: is it one, and what is its label.

/// Where the superblock begins, in bytes.
const SUPERBLOCK: usize = 1024;
const MAGIC: usize = SUPERBLOCK + 0x38;
const LABEL: usize = SUPERBLOCK + 0x78;
const LABEL_LEN: usize = 16;
/// Bytes of a partition that hold all of this.
pub(super) const HEAD: usize = 4096;

/// The label of the file system that starts with these bytes; [`None`] when it is no ext.
pub(super) fn label(head: &[u8]) -> Option<String> {
    if head.get(MAGIC..MAGIC + 2)? != [0x53, 0xef] {
        return None;
    }
    let label = head.get(LABEL..LABEL + LABEL_LEN)?;
    let end = label.iter().position(|b| *b == 0).unwrap_or(LABEL_LEN);
    Some(String::from_utf8_lossy(&label[..end]).into_owned())
}
