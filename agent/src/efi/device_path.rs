//! Device paths (UEFI specification 2.10, section 10.3): which file of which partition, and what is a network.

use super::Esp;

/// Node types and subtypes that matter here.
const MESSAGING: u8 = 3;
const MEDIA: u8 = 4;
const BIOS: u8 = 5;
const END: u8 = 0x7f;
const HARD_DRIVE: u8 = 1;
const CD_ROM: u8 = 2;
const FILE_PATH: u8 = 4;
/// MAC address, IPv4, IPv6, URI, Wi-Fi.
const NETWORK: [u8; 5] = [11, 12, 13, 24, 28];
/// Of a BIOS boot specification node: network.
const BIOS_NETWORK: u8 = 6;
/// A GUID partition table, and an identifier that is a GUID.
const GPT: u8 = 2;

/// One node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Node<'a> {
    kind: u8,
    subtype: u8,
    data: &'a [u8],
}

/// The nodes up to the end of the path, or to the first that is broken.
fn nodes(path: &[u8]) -> impl Iterator<Item = Node<'_>> {
    let mut rest = path;
    std::iter::from_fn(move || {
        let [kind, subtype, low, high, ..] = *rest else { return None };
        let len = usize::from(u16::from_le_bytes([low, high]));
        let data = rest.get(4..len)?;
        rest = rest.get(len..)?;
        (kind != END).then_some(Node { kind, subtype, data })
    })
}

fn push(path: &mut Vec<u8>, kind: u8, subtype: u8, data: &[u8]) {
    path.extend([kind, subtype]);
    path.extend(u16::try_from(data.len() + 4).unwrap_or(u16::MAX).to_le_bytes());
    path.extend(data);
}

/// The path of a file on the EFI system partition: the short form, which begins at the partition, so that it stays
/// right when the disk is moved to another slot.
pub(super) fn to_file(esp: &Esp, file: &str) -> Vec<u8> {
    let mut path = Vec::new();
    let mut drive = Vec::new();
    drive.extend(esp.number.to_le_bytes());
    drive.extend(esp.start.to_le_bytes());
    drive.extend(esp.sectors.to_le_bytes());
    drive.extend(esp.guid);
    drive.extend([GPT, GPT]);
    push(&mut path, MEDIA, HARD_DRIVE, &drive);
    let name: Vec<u8> = file.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect();
    push(&mut path, MEDIA, FILE_PATH, &name);
    push(&mut path, END, 0xff, &[]);
    path
}

/// The partition, by its GUID, and the file that a path leads to; the file in lower case, as FAT has it.
pub(super) fn file_on_partition(path: &[u8]) -> Option<([u8; 16], String)> {
    let (mut partition, mut file) = (None, String::new());
    for node in nodes(path).filter(|node| node.kind == MEDIA) {
        match node.subtype {
            HARD_DRIVE => partition = node.data.get(20..36).and_then(|guid| guid.try_into().ok()),
            FILE_PATH => {
                let units = node.data.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
                let text: Vec<u16> = units.take_while(|unit| *unit != 0).collect();
                file.push_str(&String::from_utf16_lossy(&text).to_ascii_lowercase());
            }
            _ => {}
        }
    }
    Some((partition?, file))
}

/// Whether it leads over a network.
pub(super) fn is_network(path: &[u8]) -> bool {
    nodes(path).any(|node| match node.kind {
        MESSAGING => NETWORK.contains(&node.subtype),
        BIOS => node.data.first() == Some(&BIOS_NETWORK),
        _ => false,
    })
}

/// Whether it leads to a partition, a disk or a disc.
pub(super) fn is_medium(path: &[u8]) -> bool {
    nodes(path).any(|node| node.kind == MEDIA && [HARD_DRIVE, CD_ROM].contains(&node.subtype))
}
