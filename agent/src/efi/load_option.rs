//! Load options, the content of `Boot####` (UEFI specification 2.10, section 3.1.3).

/// Bit 0 of the attributes: the boot manager tries it.
const ACTIVE: u32 = 1;

/// A load option without optional data: loaders read arguments out of it, and ours have none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LoadOption<'a> {
    pub(super) active: bool,
    /// What the firmware's menu shows.
    pub(super) description: String,
    /// Device paths, packed.
    pub(super) path: &'a [u8],
}

impl<'a> LoadOption<'a> {
    /// [`None`] for bytes that are no load option.
    pub(super) fn decode(bytes: &'a [u8]) -> Option<Self> {
        let attributes = u32::from_le_bytes(bytes.get(..4)?.try_into().ok()?);
        let path_len = usize::from(u16::from_le_bytes(bytes.get(4..6)?.try_into().ok()?));
        let rest = &bytes[6..];
        let units = rest.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
        let text: Vec<u16> = units.take_while(|unit| *unit != 0).collect();
        // The text ends with a zero, which must be there.
        let path_at = (text.len() + 1) * 2;
        let path = rest.get(path_at..path_at + path_len)?;
        let description = String::from_utf16_lossy(&text);
        Some(Self { active: attributes & ACTIVE != 0, description, path })
    }

    /// The content of the variable. A path longer than 64 KiB does not come up: it is one file's.
    pub(super) fn encode(&self) -> Vec<u8> {
        let attributes = if self.active { ACTIVE } else { 0 };
        let mut bytes = attributes.to_le_bytes().to_vec();
        bytes.extend(u16::try_from(self.path.len()).unwrap_or(u16::MAX).to_le_bytes());
        bytes.extend(self.description.encode_utf16().chain([0]).flat_map(u16::to_le_bytes));
        bytes.extend(self.path);
        bytes
    }
}
