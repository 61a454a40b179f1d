//! `farrier.disk-hints`: what the target disk must be like, for fleets whose machines are not all alike.
//!
//! A comma-separated list such as `size>=400G,rotational=0,model~=980`, of which every hint must hold. Each is a key,
//! an operator and a value: `=` compares, `~=` finds, both whatever the case; `>=` and `<=` are for sizes.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Most hints in a list.
const MAX_HINTS: usize = 16;
/// Longest list in bytes: the whole kernel command line has 2047.
const MAX_LEN: usize = 512;

/// What the target disk must be like; at least one hint.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct DiskHints(Vec<DiskHint>);

/// One condition.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum DiskHint {
    /// `size>=`: at least this many bytes.
    SizeAtLeast(u64),
    /// `size<=`: at most this many bytes.
    SizeAtMost(u64),
    /// `rotational=1` or `rotational=0`.
    Rotational(bool),
    /// `transport=`.
    Transport(Transport),
    /// `hctl=`: the kernel's SCSI address.
    Hctl([u64; 4]),
    /// A text and how it is compared.
    Text(TextKey, Match, HintText),
}

/// A key whose value is text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TextKey {
    /// Model.
    Model,
    /// Vendor.
    Vendor,
    /// Serial number.
    Serial,
    /// World-wide name, with or without `0x`, `naa.` or `eui.`.
    Wwn,
    /// Name under `/dev/disk/by-path`, with or without that directory.
    ByPath,
}

/// How a text is compared, whatever the case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Match {
    /// `=`: the same.
    Exact,
    /// `~=`: contained.
    Contains,
}

/// How a disk is attached: the protocol it speaks itself, so a SATA disk behind a SAS adapter is `sata`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transport {
    /// NVMe.
    Nvme,
    /// SATA, and PATA.
    Sata,
    /// Serial attached SCSI.
    Sas,
    /// SCSI by any other way: a RAID controller's volume, a hypervisor's disk.
    Scsi,
    /// A virtio block device.
    Virtio,
    /// USB.
    Usb,
    /// eMMC or an SD card.
    Mmc,
    /// Fibre Channel.
    Fc,
    /// iSCSI.
    Iscsi,
    /// Persistent memory.
    Pmem,
}

/// A text of printable ASCII without white space, quotes or commas. An underscore stands for white space too.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HintText(String);

/// Why a text is not a [`DiskHints`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DiskHintsError {
    /// Nothing, or too much.
    #[error(
        "expected 1 to {MAX_HINTS} hints and at most {MAX_LEN} characters, such as size>=400G,rotational=0"
    )]
    Length,
    /// No such key, or no operator after it.
    #[error(
        "{found:?} is not a disk hint: expected size, model, vendor, serial, wwn, rotational, transport, hctl or \
         by-path, then = (or ~= for text, >= and <= for size), then a value"
    )]
    Unknown {
        /// What was given, cut to a printable length.
        found: String,
    },
    /// The key is known, and what follows does not suit it.
    #[error("{found:?} is not a disk hint: {expected}")]
    Value {
        /// What was given, cut to a printable length.
        found: String,
        /// What the key takes.
        expected: &'static str,
    },
}

impl DiskHints {
    /// The hints, in the order given.
    pub fn iter(&self) -> impl Iterator<Item = &DiskHint> {
        self.0.iter()
    }
}

impl Transport {
    /// Every transport.
    pub const ALL: [Self; 10] = [
        Self::Nvme,
        Self::Sata,
        Self::Sas,
        Self::Scsi,
        Self::Virtio,
        Self::Usb,
        Self::Mmc,
        Self::Fc,
        Self::Iscsi,
        Self::Pmem,
    ];

    /// Whether a disk there may be a machine's system disk without anybody saying so. Others are somebody else's until
    /// they are asked for: a stick left in, a volume of a storage network that other machines see too, memory.
    pub fn is_own(self) -> bool {
        match self {
            Self::Nvme | Self::Sata | Self::Sas | Self::Scsi | Self::Virtio => true,
            Self::Usb | Self::Mmc | Self::Fc | Self::Iscsi | Self::Pmem => false,
        }
    }

    /// Its name in a hint.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Nvme => "nvme",
            Self::Sata => "sata",
            Self::Sas => "sas",
            Self::Scsi => "scsi",
            Self::Virtio => "virtio",
            Self::Usb => "usb",
            Self::Mmc => "mmc",
            Self::Fc => "fc",
            Self::Iscsi => "iscsi",
            Self::Pmem => "pmem",
        }
    }
}

impl HintText {
    /// The text as given.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TextKey {
    /// Every key.
    const ALL: [Self; 5] = [Self::Model, Self::Vendor, Self::Serial, Self::Wwn, Self::ByPath];

    /// Its name in a hint.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Vendor => "vendor",
            Self::Serial => "serial",
            Self::Wwn => "wwn",
            Self::ByPath => "by-path",
        }
    }
}

impl FromStr for DiskHints {
    type Err = DiskHintsError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.len() > MAX_LEN || text.split(',').count() > MAX_HINTS {
            return Err(DiskHintsError::Length);
        }
        if text.is_empty() {
            return Err(DiskHintsError::Length);
        }
        text.split(',').map(str::parse).collect::<Result<Vec<_>, _>>().map(Self)
    }
}

impl FromStr for DiskHint {
    type Err = DiskHintsError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = || text.chars().take(80).collect::<String>();
        let unknown = || DiskHintsError::Unknown { found: found() };
        let at = text.find(['<', '>', '~', '=']).ok_or_else(unknown)?;
        let (key, rest) = text.split_at(at);
        let (operator, value) = ["<=", ">=", "~=", "="]
            .into_iter()
            .find_map(|operator| Some((operator, rest.strip_prefix(operator)?)))
            .ok_or_else(unknown)?;
        let expected = |expected| DiskHintsError::Value { found: found(), expected };
        if let Some(key) = TextKey::ALL.into_iter().find(|k| k.as_str() == key) {
            let how = match operator {
                "=" => Match::Exact,
                "~=" => Match::Contains,
                _ => return Err(expected("this key takes = or ~=")),
            };
            let plain = |b: u8| b.is_ascii_graphic() && !b"\"'`\\,".contains(&b);
            if value.is_empty() || !value.bytes().all(plain) {
                return Err(expected(
                    "the value is printable ASCII without spaces or quotes; write _ for a space",
                ));
            }
            return Ok(Self::Text(key, how, HintText(value.to_owned())));
        }
        match (key, operator) {
            ("size", ">=") => size(value).map(Self::SizeAtLeast).ok_or_else(|| expected(SIZE)),
            ("size", "<=") => size(value).map(Self::SizeAtMost).ok_or_else(|| expected(SIZE)),
            ("size", _) => Err(expected("size takes >= or <=")),
            ("rotational", "=") => match value {
                "0" => Ok(Self::Rotational(false)),
                "1" => Ok(Self::Rotational(true)),
                _ => Err(expected("rotational is 0 or 1")),
            },
            ("transport", "=") => {
                Transport::ALL.into_iter().find(|t| t.as_str() == value).map(Self::Transport).ok_or_else(
                    || expected("transport is nvme, sata, sas, scsi, virtio, usb, mmc, fc, iscsi or pmem"),
                )
            }
            ("hctl", "=") => {
                hctl(value).map(Self::Hctl).ok_or_else(|| expected("hctl is four numbers such as 0:0:1:0"))
            }
            ("rotational" | "transport" | "hctl", _) => Err(expected("this key takes = alone")),
            _ => Err(unknown()),
        }
    }
}

const SIZE: &str =
    "size is whole bytes, or a number with K, M, G, T (powers of 1000) or Ki, Mi, Gi, Ti (of 1024)";

/// Suffixes and their worth, the largest first. Disks are sold in powers of 1000.
const UNITS: [(&str, u64); 8] = [
    ("Ti", 1 << 40),
    ("T", 1_000_000_000_000),
    ("Gi", 1 << 30),
    ("G", 1_000_000_000),
    ("Mi", 1 << 20),
    ("M", 1_000_000),
    ("Ki", 1 << 10),
    ("K", 1_000),
];

fn size(text: &str) -> Option<u64> {
    let (number, unit) = UNITS
        .into_iter()
        .find_map(|(suffix, unit)| Some((text.strip_suffix(suffix)?, unit)))
        .unwrap_or((text, 1));
    decimal(number)?.checked_mul(unit)
}

/// Digits alone: the standard parser takes a sign as well.
fn decimal(text: &str) -> Option<u64> {
    text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

fn hctl(text: &str) -> Option<[u64; 4]> {
    let numbers: Vec<u64> = text.split(':').map(decimal).collect::<Option<_>>()?;
    numbers.try_into().ok()
}

impl fmt::Display for DiskHints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, hint) in self.0.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            write!(f, "{comma}{hint}")?;
        }
        Ok(())
    }
}

impl fmt::Display for DiskHint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SizeAtLeast(size) => write!(f, "size>={}", Size(*size)),
            Self::SizeAtMost(size) => write!(f, "size<={}", Size(*size)),
            Self::Rotational(spins) => write!(f, "rotational={}", u8::from(*spins)),
            Self::Transport(transport) => write!(f, "transport={}", transport.as_str()),
            Self::Hctl([host, channel, target, lun]) => write!(f, "hctl={host}:{channel}:{target}:{lun}"),
            Self::Text(key, how, text) => {
                let operator = match how {
                    Match::Exact => "=",
                    Match::Contains => "~=",
                };
                write!(f, "{}{operator}{}", key.as_str(), text.as_str())
            }
        }
    }
}

/// In the largest unit that leaves it whole.
struct Size(u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = UNITS.into_iter().find(|(_, unit)| self.0 > 0 && self.0.is_multiple_of(*unit));
        let (suffix, unit) = whole.unwrap_or(("", 1));
        write!(f, "{}{suffix}", self.0 / unit)
    }
}

impl TryFrom<String> for DiskHints {
    type Error = DiskHintsError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<DiskHints> for String {
    fn from(hints: DiskHints) -> Self {
        hints.to_string()
    }
}
