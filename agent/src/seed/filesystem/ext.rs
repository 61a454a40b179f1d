//! The superblock of ext2, ext3 and ext4 (`Documentation/filesystems/ext4/super.rst`).

/// Where the superblock begins, in bytes.
const SUPERBLOCK: usize = 1024;
const LOG_BLOCK: usize = SUPERBLOCK + 0x18;
const MAGIC: usize = SUPERBLOCK + 0x38;
const LABEL: usize = SUPERBLOCK + 0x78;
const LABEL_LEN: usize = 16;

/// What the superblock says.
#[derive(Debug)]
pub(super) struct Ext {
    pub(super) label: String,
    /// Bytes to a block; [`None`] when it is beyond all sense.
    pub(super) block: Option<u32>,
}

/// Reads the superblock of what starts with these bytes; [`None`] when it is no ext.
pub(super) fn read(head: &[u8]) -> Option<Ext> {
    if head.get(MAGIC..MAGIC + 2)? != [0x53, 0xef] {
        return None;
    }
    let log = u32::from_le_bytes(head.get(LOG_BLOCK..LOG_BLOCK + 4)?.try_into().ok()?);
    let label = super::text(head.get(LABEL..LABEL + LABEL_LEN)?);
    Some(Ext { label, block: (log <= 6).then(|| 1024 << log) })
}
