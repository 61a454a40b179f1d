//! The boot sector of FAT (Microsoft's FAT32 File System Specification, and ECMA-107).
//!
//! Its label is the copy in the boot sector, which `blkid` shows as `LABEL_FATBOOT`; every common tool writes it
//! together with the one in the root directory.

/// What the boot sector says.
#[derive(Debug)]
pub(super) struct Fat {
    pub(super) label: String,
    /// Bytes to a sector.
    pub(super) sector: u32,
}

/// Reads the boot sector these bytes start with; [`None`] when it is none.
pub(super) fn read(head: &[u8]) -> Option<Fat> {
    let sector = u16::from_le_bytes(head.get(11..13)?.try_into().ok()?);
    let (cluster, copies, media) = (head.get(13)?, head.get(16)?, head.get(21)?);
    let sane = head.get(510..512)? == [0x55, 0xaa]
        && [512, 1024, 2048, 4096].contains(&sector)
        && cluster.is_power_of_two()
        && (1..=2).contains(copies)
        && *media >= 0xf0;
    // The extended part lies at one place in FAT12 and FAT16, and at another in FAT32.
    let (signature, label) = [(0x26, 0x2b, 0x36), (0x42, 0x47, 0x52)]
        .into_iter()
        .find(|(_, _, name)| head.get(*name..name + 3) == Some(b"FAT"))
        .map(|(signature, label, _)| (signature, label))
        .filter(|_| sane)?;
    let label = match head.get(signature)? {
        0x29 => super::text(head.get(label..label + 11)?).trim_end().to_owned(),
        _ => String::new(),
    };
    let label = if label == "NO NAME" { String::new() } else { label };
    Some(Fat { label, sector: sector.into() })
}
