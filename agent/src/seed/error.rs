//! Why the seed was not planted. Says nothing of what it holds.

use std::io;

use crate::disk::DiskError;

/// Why the seed was not planted.
#[derive(Debug, thiserror::Error)]
pub enum SeedError {
    /// The image has no place for it.
    #[error(
        "{label} partition not found on {disk} among {found}; the image must have an ext2/3/4 so labelled"
    )]
    NotFound {
        /// What was looked for.
        label: &'static str,
        /// Disk.
        disk: String,
        /// Partitions and what they are.
        found: String,
    },
    /// The partitions cannot be listed.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// A step with the file system failed.
    #[error("{label} inject failed: {action} {what}: {source}")]
    Io {
        /// Which partition.
        label: &'static str,
        /// What was done, such as `writing`.
        action: &'static str,
        /// To what; names of ours only.
        what: String,
        /// Why.
        source: io::Error,
    },
}
