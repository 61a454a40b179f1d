//! Why no system was installed, in words an operator can act on.

use farrier_shared::contract::Digest;
use farrier_shared::contract::callback::cut_reason;

use crate::disk::DiskError;
use crate::disk::table::TableError;
use crate::seed::SeedError;

/// Why no system was installed. Hosts are named without path and query, which may hold secrets.
#[derive(Debug, thiserror::Error)]
pub enum DeployError {
    /// The HTTP client cannot be made.
    #[error("the HTTP client cannot be set up: {cause}")]
    Client {
        /// What failed.
        cause: String,
    },
    /// The image server answered with a status that a retry does not change, or did not stop doing so.
    #[error("HTTP {status} from {host}")]
    Status {
        /// The status.
        status: u16,
        /// Who answered.
        host: String,
    },
    /// The image server cannot be reached, or breaks off again and again.
    #[error("{host}: {cause}, after {received} bytes and {attempts} attempts without progress")]
    Transport {
        /// Image server.
        host: String,
        /// The last failure.
        cause: String,
        /// Bytes of the image that came.
        received: u64,
        /// How often it was tried since the last byte.
        attempts: u32,
    },
    /// Every place of the image is slower than it may be.
    #[error("{host} brings only {rate} bytes per second, less than farrier.min-rate, after {received} bytes")]
    TooSlow {
        /// Image server.
        host: String,
        /// Bytes per second.
        rate: u64,
        /// Bytes of the image that came.
        received: u64,
    },
    /// A redirect that must not be followed.
    #[error("{host} redirects {cause}")]
    Redirect {
        /// Image server.
        host: String,
        /// Whereto, or how often.
        cause: &'static str,
    },
    /// The image ends before it should.
    #[error("image from {host} is truncated: {received} of {expected} bytes")]
    Truncated {
        /// Image server.
        host: String,
        /// Bytes that came.
        received: u64,
        /// Bytes announced.
        expected: u64,
    },
    /// The image is another one than when the download began.
    #[error("image on {host} changed during the download: its {what} is another after {received} bytes")]
    Replaced {
        /// Image server.
        host: String,
        /// What differs.
        what: &'static str,
        /// Bytes that came before.
        received: u64,
    },
    /// A format that is known and not supported.
    #[error("image format {format} is not supported; use raw, gzip, zstd, xz, bzip2, lz4 or qcow2")]
    Unsupported {
        /// Its name.
        format: &'static str,
    },
    /// What came is no disk image.
    #[error("not a disk image: no partition table in its first bytes{hint}")]
    NotAnImage {
        /// What it looks like instead.
        hint: &'static str,
    },
    /// The compressed stream is broken.
    #[error("{format} stream is broken after {decoded} decoded bytes: {cause}")]
    Decode {
        /// Format.
        format: &'static str,
        /// Bytes decoded before.
        decoded: u64,
        /// What the decoder says.
        cause: String,
    },
    /// A kind of the format that cannot be streamed.
    #[error("{format} image is refused: {cause}")]
    Layout {
        /// Format.
        format: &'static str,
        /// What it asks for, and what to do.
        cause: String,
    },
    /// The image is known to be larger than the disk, before anything was written.
    #[error("image is {} larger than {disk} ({image} bytes on {size})", human(.image.saturating_sub(*.size)))]
    TooLarge {
        /// Disk.
        disk: String,
        /// Its size in bytes.
        size: u64,
        /// Image size in bytes.
        image: u64,
    },
    /// The image turned out to be larger than the disk.
    #[error("image is larger than {disk} of {size} bytes; stopped there")]
    Oversize {
        /// Disk.
        disk: String,
        /// Its size in bytes.
        size: u64,
    },
    /// The image's partition table does not fit this disk.
    #[error("{disk}: {source}")]
    Table {
        /// Disk.
        disk: String,
        /// What is wrong.
        source: TableError,
    },
    /// The served bytes are not those the digest names.
    #[error("image digest mismatch: expected {expected} got {got} after {bytes} bytes from {host}")]
    DigestMismatch {
        /// Ordered.
        expected: Digest,
        /// Computed.
        got: Digest,
        /// Bytes served.
        bytes: u64,
        /// Image server.
        host: String,
    },
    /// The decoded bytes are not those the operator's second digest names.
    #[error("decoded image digest mismatch: expected {expected} got {got} after {bytes} bytes")]
    ContentMismatch {
        /// Ordered.
        expected: Digest,
        /// Computed.
        got: Digest,
        /// Bytes decoded.
        bytes: u64,
    },
    /// The disk does not hold what was written to it.
    #[error("{disk} reads back other bytes than were written ({what}); replace the disk")]
    ReadBack {
        /// Disk.
        disk: String,
        /// Which part.
        what: &'static str,
    },
    /// The disk failed.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The kernel does not see the new partitions.
    #[error("the kernel does not show partitions {missing} of {disk} after {seconds} s: {cause}")]
    Partitions {
        /// Disk.
        disk: String,
        /// Their numbers.
        missing: String,
        /// How long was waited.
        seconds: u64,
        /// What re-reading the table last said.
        cause: String,
    },
    /// The seed was not planted.
    #[error(transparent)]
    Seed(#[from] SeedError),
    /// The run gave up before the image was complete.
    #[error("given up before the image was complete")]
    Abandoned,
    /// A stage stopped by a fault of ours.
    #[error("stage {stage} stopped by a fault in the agent")]
    Fault {
        /// Which.
        stage: &'static str,
    },
    /// And on top of it the disk could not be made unbootable.
    #[error("{cause}; AND {disk} COULD NOT BE WIPED: {wipe}")]
    NotWiped {
        /// Disk.
        disk: String,
        /// What went wrong first.
        cause: Box<DeployError>,
        /// Why wiping failed.
        wipe: DiskError,
    },
}

impl DeployError {
    /// Step and cause for the operator: at most 256 bytes, no secret, no path of a URL.
    pub fn reason(&self) -> String {
        let text = match self {
            // The end of the message is what matters most here, and a long first cause must not push it out.
            Self::NotWiped { disk, cause, .. } => format!("DISK {disk} NOT WIPED after {}", cause.reason()),
            other => format!("{}: {other}", other.step()),
        };
        cut_reason(&text).to_owned()
    }

    /// The step that failed, in one word.
    fn step(&self) -> &'static str {
        match self {
            Self::Client { .. }
            | Self::Status { .. }
            | Self::Transport { .. }
            | Self::TooSlow { .. }
            | Self::Redirect { .. }
            | Self::Truncated { .. }
            | Self::Replaced { .. } => "fetch",
            Self::Unsupported { .. }
            | Self::NotAnImage { .. }
            | Self::Decode { .. }
            | Self::Layout { .. } => "decode",
            Self::TooLarge { .. } | Self::Table { .. } => "check",
            Self::ReadBack { .. } => "verify",
            Self::Partitions { .. } => "partition",
            Self::Seed(_) => "seed",
            Self::Disk(_) => "disk",
            Self::Oversize { .. }
            | Self::DigestMismatch { .. }
            | Self::ContentMismatch { .. }
            | Self::Abandoned
            | Self::Fault { .. }
            | Self::NotWiped { .. } => "write",
        }
    }
}

/// A size in the largest binary unit that leaves at least one, rounded up: "too large by 0 GiB" helps nobody.
fn human(bytes: u64) -> String {
    let units = [(1_u64 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let unit = units.into_iter().find(|(size, _)| bytes >= *size);
    unit.map_or_else(|| format!("{bytes} bytes"), |(size, name)| format!("{} {name}", bytes.div_ceil(size)))
}

#[cfg(test)]
mod tests {
    use farrier_shared::contract::callback::MAX_REASON;

    use super::*;

    #[test]
    fn a_reason_names_step_and_cause_and_never_exceeds_the_contract() {
        let digest = Digest::from_bytes([0xab; 32]);
        let error = DeployError::DigestMismatch {
            expected: digest,
            got: digest,
            bytes: u64::MAX,
            host: "ü".repeat(300),
        };
        let reason = error.reason();
        assert!(reason.starts_with("write: image digest mismatch: expected sha256:abab"), "{reason}");
        assert!(reason.len() <= MAX_REASON && reason.len() > MAX_REASON - 4);
    }

    #[test]
    fn a_disk_left_unwiped_is_said_first() {
        let error = DeployError::NotWiped {
            disk: "/dev/vda".to_owned(),
            cause: Box::new(DeployError::Status { status: 404, host: "images.example".to_owned() }),
            wipe: DiskError::Busy { disk: "/dev/vda".to_owned() },
        };
        assert_eq!(error.reason(), "DISK /dev/vda NOT WIPED after fetch: HTTP 404 from images.example");
    }

    #[test]
    fn an_image_too_large_says_by_how_much() {
        let error =
            DeployError::TooLarge { disk: "/dev/vda".to_owned(), size: 10 << 30, image: (15 << 30) - 7 };
        assert_eq!(
            error.reason(),
            "check: image is 5 GiB larger than /dev/vda (16106127353 bytes on 10737418240)"
        );
    }
}
