//! Why a disk cannot be used. Each text starts lower-case and says which disk.

use std::io;

/// A disk that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    /// The kernel's list of block devices cannot be read.
    #[error("cannot list block devices in {path}: {source}")]
    List {
        /// The directory.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// Nothing to write to.
    #[error("no eligible target disk: need one of at least {required} bytes, found {found}")]
    NoneEligible {
        /// Bytes the image needs.
        required: u64,
        /// Every disk with its size or what rules it out.
        found: String,
    },
    /// No disk is what the hints ask for.
    #[error("no disk matches farrier.disk-hints={hints}; found {found}")]
    NoneMatches {
        /// The hints.
        hints: String,
        /// Every disk with what rules it out.
        found: String,
    },
    /// The pinned disk is not what the hints ask for.
    #[error("target disk {pin} does not match farrier.disk-hints={hints}: its {mismatch}")]
    PinAgainstHints {
        /// The pin.
        pin: String,
        /// The hints.
        hints: String,
        /// What differs.
        mismatch: String,
    },
    /// The pin names several disks.
    #[error("target disk {pin} names several disks, {found}; name one by path")]
    Ambiguous {
        /// The pin.
        pin: String,
        /// Those it names.
        found: String,
    },
    /// The pinned disk does not exist.
    #[error("target disk {pin} not found; disks here: {found}")]
    NotFound {
        /// The pin.
        pin: String,
        /// What there is.
        found: String,
    },
    /// The pin names something else than a block device.
    #[error("target disk {pin} is not a block device")]
    NotBlockDevice {
        /// The pin.
        pin: String,
    },
    /// The pin names a partition.
    #[error("target disk {pin} is a partition; name the whole disk")]
    Partition {
        /// The pin.
        pin: String,
    },
    /// The pinned disk must not be written to.
    #[error("target disk {pin} is not eligible: it is {refusal}")]
    Ineligible {
        /// The pin.
        pin: String,
        /// What rules it out.
        refusal: super::Refusal,
    },
    /// The pinned disk cannot hold the image.
    #[error("target disk {pin} of {size} bytes is too small: the image needs {required}")]
    TooSmall {
        /// The pin.
        pin: String,
        /// Size of the disk in bytes.
        size: u64,
        /// Bytes the image needs.
        required: u64,
    },
    /// The device cannot be opened.
    #[error("cannot open {disk}: {source}")]
    Open {
        /// Its path.
        disk: String,
        /// Why.
        source: io::Error,
    },
    /// Something holds the device.
    #[error("{disk} is in use by another holder (mounted, swap, LVM, md)")]
    Busy {
        /// Its path.
        disk: String,
    },
    /// The kernel built something on the disk that does not let go.
    #[error("{disk} is held by {holder}: {why}; remove it, or choose another disk")]
    Held {
        /// Kernel name of the disk.
        disk: String,
        /// Kernel name of the holder.
        holder: String,
        /// What it is, or why it stays.
        why: String,
    },
    /// The opened device is not the disk that was chosen.
    #[error("{disk} is no longer the disk that was chosen: its {what} was {expected}, is now {got}")]
    Changed {
        /// Its path.
        disk: String,
        /// Which mark differs.
        what: &'static str,
        /// As chosen.
        expected: String,
        /// As found.
        got: String,
    },
    /// Reading or writing failed.
    #[error("{action} {disk} at byte {offset} failed: {source}")]
    Io {
        /// Its path.
        disk: String,
        /// What was done, such as `writing`.
        action: &'static str,
        /// Where, in bytes.
        offset: u64,
        /// Why.
        source: io::Error,
    },
    /// What was zeroed does not read back as zeros.
    #[error("{disk} does not keep what is written: byte {offset} is not zero after wiping")]
    NotWiped {
        /// Its path.
        disk: String,
        /// Where.
        offset: u64,
    },
}
