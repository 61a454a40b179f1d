//! What an image is, by its first bytes.

use super::DeployError;
use crate::disk::table::looks_partitioned;

/// Bytes of an image needed to tell its format.
pub(super) const HEAD: usize = 64 << 10;

/// A format the pipeline decodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Raw,
    Gzip,
    Zstd,
    Xz,
    Bzip2,
    Lz4,
    Qcow2,
}

/// The formats with a mark of their own; raw is what has none of these and a partition table.
const MAGIC: &[(&[u8], Format)] = &[
    (b"\x1f\x8b", Format::Gzip),
    (b"\x28\xb5\x2f\xfd", Format::Zstd),
    (b"\xfd7zXZ\0", Format::Xz),
    (b"BZh", Format::Bzip2),
    (b"\x04\x22\x4d\x18", Format::Lz4),
    (b"QFI\xfb", Format::Qcow2),
];

/// Formats that are told apart only to be refused by name.
const REFUSED: &[(usize, &[u8], &str)] = &[
    (0, b"KDMV", "vmdk"),
    (0, b"vhdxfile", "vhdx"),
    (0, b"conectix", "vhd"),
    (0, b"PK\x03\x04", "zip"),
    (0, b"7z\xbc\xaf\x27\x1c", "7z"),
    (257, b"ustar", "tar"),
];

impl Format {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
            Self::Xz => "xz",
            Self::Bzip2 => "bzip2",
            Self::Lz4 => "lz4",
            Self::Qcow2 => "qcow2",
        }
    }

    /// The format of an image that starts with these bytes, which are all of it or at least [`HEAD`].
    pub(super) fn of(head: &[u8]) -> Result<Self, DeployError> {
        if let Some((_, format)) = MAGIC.iter().find(|(magic, _)| head.starts_with(magic)) {
            return Ok(*format);
        }
        // Skippable frames may stand before the first one of zstd.
        if head.len() >= 4 && head[1..4] == [0x2a, 0x4d, 0x18] && head[0] & 0xf0 == 0x50 {
            return Ok(Self::Zstd);
        }
        let refused = REFUSED.iter().find(|(at, magic, _)| head.get(*at..*at + magic.len()) == Some(*magic));
        if let Some((_, _, format)) = refused {
            return Err(DeployError::Unsupported { format });
        }
        check_is_disk_image(head)?;
        Ok(Self::Raw)
    }
}

/// Refuses decoded bytes that no machine could boot from.
pub(super) fn check_is_disk_image(head: &[u8]) -> Result<(), DeployError> {
    if looks_partitioned(head) {
        return Ok(());
    }
    let text = head.iter().find(|b| !b.is_ascii_whitespace());
    let hint = match text {
        None => " (nothing was served)",
        Some(b'<') => " (it looks like a web page)",
        Some(b'{') => " (it looks like JSON)",
        Some(_) => "",
    };
    Err(DeployError::NotAnImage { hint })
}
