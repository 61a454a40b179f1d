//! Why the seed was not planted. Says nothing of what it holds.

use std::io;

use crate::disk::DiskError;

/// Why the seed was not planted.
#[derive(Debug, thiserror::Error)]
pub enum SeedError {
    /// The image has no place for it.
    #[error("{label} partition not found on {disk} among {found}; the image must have {wanted}")]
    NotFound {
        /// What was looked for.
        label: &'static str,
        /// Disk.
        disk: String,
        /// Partitions and what they are.
        found: String,
        /// What would have done.
        wanted: &'static str,
    },
    /// The partitions cannot be listed.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// A step with the file system failed.
    #[error("{label} inject failed: {action} {what}: {source}")]
    Io {
        /// Whose place it is.
        label: &'static str,
        /// What was done, such as `writing`.
        action: &'static str,
        /// To what; names of ours only.
        what: String,
        /// Why.
        source: io::Error,
    },
    /// A file system made for smaller sectors than the disk has cannot be mounted.
    #[error(
        "{partition} holds a file system with sectors of {sector} bytes, but the disk's have {disk}; make the image \
         with those"
    )]
    SectorSize {
        /// Which partition.
        partition: String,
        /// Bytes to a sector it was made with.
        sector: u32,
        /// The disk's.
        disk: u32,
    },
    /// Something is to be mounted over the place once the system runs.
    #[error(
        "the seed directory on {partition} would be hidden: /etc/fstab mounts another file system on {mount_point}; \
         give the image a FAT partition labelled CIDATA"
    )]
    Hidden {
        /// The root partition.
        partition: String,
        /// Mount point.
        mount_point: &'static str,
    },
    /// Ignition would not run.
    #[error(
        "{partition} has no ignition.firstboot: the image has been started before, and Ignition would not run again"
    )]
    NotFirstBoot {
        /// The boot partition.
        partition: String,
    },
    /// The user-data is no Ignition config.
    #[error(
        "the user-data is no Ignition config: {reason}; expected JSON with ignition.version, as Butane makes it"
    )]
    NotIgnition {
        /// What is wrong, without its content.
        reason: String,
    },
}

impl SeedError {
    /// A closure for `map_err`.
    pub(super) fn io(action: &'static str, what: &str) -> impl FnOnce(io::Error) -> Self {
        let what = what.to_owned();
        move |source| Self::Io { label: "seed", action, what, source }
    }

    /// The same of the place with this label.
    pub(super) fn at(mut self, place: &'static str) -> Self {
        if let Self::Io { label, .. } = &mut self {
            *label = place;
        }
        self
    }
}
