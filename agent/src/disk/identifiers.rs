//! Identifiers of file systems and volumes, by which an installed system finds them again.

use super::signature::Ends;

/// One identifier, and whose kind it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Identifier {
    /// What carries it, such as `ext`.
    pub(super) kind: &'static str,
    /// Its bytes, as on the disk.
    pub(super) bytes: Vec<u8>,
}

/// Where the identifier of a kind is, in bytes from the start.
const AT_START: [(&str, u64, usize); 5] = [
    ("ext", 1024 + 0x68, 16),
    ("xfs", 32, 16),
    ("btrfs", 0x1_0020, 16),
    ("swap", 1024 + 12, 16),
    ("LUKS", 168, 40),
];
/// First sector of a disk of 512-byte sectors that may hold the label of an LVM2 volume, and how many may.
const LVM_LABELS: u64 = 4;

/// The identifiers of what these marks say is there. Those that are all zeros are none.
pub(super) fn identifiers(ends: &Ends, marks: &[&'static str]) -> Vec<Identifier> {
    let mut all = Vec::new();
    for mark in marks {
        let bytes = match *mark {
            "vfat" => {
                // Volume id: FAT32 has it after a longer block of parameters.
                let is_32 = ends.at(82, 5) == Some(b"FAT32");
                ends.at(if is_32 { 67 } else { 39 }, 4).map(<[u8]>::to_vec)
            }
            "LVM2" => lvm(ends),
            "md 1.0" => ends.aligned_end(4096, 2).and_then(|at| set_of_1x(ends, at)),
            "md 1.1" => set_of_1x(ends, 0),
            "md 1.2" => set_of_1x(ends, 4096),
            "md 0.90" => ends.aligned_end(65536, 1).and_then(|at| {
                // Four words: one, then three further on.
                Some([ends.at(at + 20, 4)?, ends.at(at + 52, 12)?].concat())
            }),
            other => {
                let place = AT_START.iter().find(|(kind, ..)| *kind == other);
                place.and_then(|(_, at, len)| ends.at(*at, *len)).map(<[u8]>::to_vec)
            }
        };
        if let Some(bytes) = bytes.filter(|bytes| bytes.iter().any(|b| *b != 0)) {
            all.push(Identifier { kind: mark, bytes });
        }
    }
    all
}

/// Set identifier in a superblock of version 1 at this position.
fn set_of_1x(ends: &Ends, at: u64) -> Option<Vec<u8>> {
    ends.at(at + 16, 16).map(<[u8]>::to_vec)
}

/// Identifier of a physical volume: the label says where its header begins.
fn lvm(ends: &Ends) -> Option<Vec<u8>> {
    let label = (0..LVM_LABELS).map(|n| n * 512).find(|at| ends.at(*at, 8) == Some(b"LABELONE"))?;
    let offset = u32::from_le_bytes(ends.at(label + 20, 4)?.try_into().ok()?);
    // A header outside of its label's sector is no header.
    (offset <= 480).then(|| ends.at(label + u64::from(offset), 32)).flatten().map(<[u8]>::to_vec)
}
