//! The variables that UEFI firmware keeps, out of the flash behind them (EDK II, `VariableFormat.h`).

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use uuid::{Uuid, uuid};

/// Marks a store of authenticated variables.
const STORE: Uuid = uuid!("aaf32c78-947b-439a-a180-2e144ec37792");
/// Whose variables the boot manager's are.
const GLOBAL: Uuid = uuid!("8be4df61-93ca-11d2-aa0d-00e098032b8c");
/// Bytes of the header of a store, and of one variable.
const STORE_HEADER: usize = 28;
const HEADER: usize = 60;
const START: u16 = 0x55aa;
/// State of a variable that counts, and of one that is about to be replaced.
const ADDED: u8 = 0x3f;
const LEAVING: u8 = 0x3e;

/// The boot manager's variables.
#[derive(Debug, Default)]
pub struct Variables(BTreeMap<String, Vec<u8>>);

/// A `Boot####`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BootEntry {
    /// What the firmware's menu shows.
    pub name: String,
    /// Its device path, packed.
    pub path: Vec<u8>,
}

impl Variables {
    /// Reads the file behind a machine's flash.
    ///
    /// # Errors
    /// When there is no store in it.
    pub fn read(flash: &Path) -> Result<Self> {
        let bytes = fs::read(flash).with_context(|| format!("read {}", flash.display()))?;
        Self::parse(&bytes).with_context(|| format!("find variables in {}", flash.display()))
    }

    fn parse(flash: &[u8]) -> Result<Self> {
        let mark = STORE.to_bytes_le();
        let store = flash.windows(16).position(|bytes| bytes == mark).context("no variable store")?;
        let mut at = store + STORE_HEADER;
        let mut found = BTreeMap::new();
        while let Some(header) = flash.get(at..at + HEADER).filter(|header| word(header, 0) == START) {
            let [name, data] = [36, 40].map(|field| long(header, field));
            let name_at = at + HEADER;
            let value = flash.get(name_at..name_at + name + data).context("a variable exceeds the flash")?;
            let (name, value) = value.split_at(name);
            if header[44..60] == GLOBAL.to_bytes_le() {
                let name = text(name);
                match header[2] {
                    ADDED => drop(found.insert(name, value.to_vec())),
                    LEAVING => drop(found.entry(name).or_insert_with(|| value.to_vec())),
                    _ => {}
                }
            }
            at = (name_at + name.len() + value.len()).next_multiple_of(4);
        }
        Ok(Self(found))
    }

    /// What the firmware boots, in its order.
    ///
    /// # Errors
    /// When the order names an entry that is not there.
    pub fn boot_order(&self) -> Result<Vec<BootEntry>> {
        let order = self.0.get("BootOrder").context("no BootOrder")?;
        let numbers = order.chunks_exact(2).map(|pair| word(pair, 0));
        numbers.map(|number| self.entry(&format!("Boot{number:04X}"))).collect()
    }

    fn entry(&self, variable: &str) -> Result<BootEntry> {
        let bytes = self.0.get(variable).with_context(|| format!("no {variable}"))?;
        ensure!(bytes.len() > 6, "{variable} is too short");
        let name = text(&bytes[6..]);
        let path_at = 6 + (name.encode_utf16().count() + 1) * 2;
        let path = bytes.get(path_at..path_at + usize::from(word(bytes, 4)));
        let path = path.with_context(|| format!("{variable} has no path"))?.to_vec();
        Ok(BootEntry { name, path })
    }
}

impl BootEntry {
    /// Whether its device path has a node of this type and subtype (UEFI specification 2.10, section 10.3).
    pub fn has_node(&self, kind: u8, subtype: u8) -> bool {
        let mut rest = self.path.as_slice();
        while let [a, b, low, high, ..] = *rest {
            if (a, b) == (kind, subtype) {
                return true;
            }
            let len = usize::from(u16::from_le_bytes([low, high])).max(4);
            rest = rest.get(len..).unwrap_or_default();
        }
        false
    }

    /// Whether its device path leads to this partition.
    pub fn leads_to(&self, partition: Uuid) -> bool {
        self.path.windows(16).any(|bytes| bytes == partition.to_bytes_le())
    }
}

fn word(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn long(bytes: &[u8], at: usize) -> usize {
    usize::from(word(bytes, at)) | usize::from(word(bytes, at + 2)) << 16
}

/// UTF-16 up to its zero.
fn text(bytes: &[u8]) -> String {
    let units: Vec<u16> =
        bytes.chunks_exact(2).map(|pair| word(pair, 0)).take_while(|unit| *unit != 0).collect();
    String::from_utf16_lossy(&units)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn utf16(text: &str) -> Vec<u8> {
        text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect()
    }

    fn variable(state: u8, vendor: Uuid, name: &str, data: &[u8]) -> Vec<u8> {
        let name = utf16(name);
        let mut bytes = vec![0; HEADER];
        bytes[..2].copy_from_slice(&START.to_le_bytes());
        bytes[2] = state;
        bytes[36..40].copy_from_slice(&u32::try_from(name.len()).unwrap().to_le_bytes());
        bytes[40..44].copy_from_slice(&u32::try_from(data.len()).unwrap().to_le_bytes());
        bytes[44..60].copy_from_slice(&vendor.to_bytes_le());
        bytes.extend(name);
        bytes.extend(data);
        bytes.resize(bytes.len().next_multiple_of(4), 0xff);
        bytes
    }

    fn option(name: &str, path: &[u8]) -> Vec<u8> {
        let len = u16::try_from(path.len()).unwrap().to_le_bytes();
        [&[1, 0, 0, 0][..], &len, &utf16(name), path].concat()
    }

    #[test]
    fn the_order_is_read_from_what_counts() {
        let partition = Uuid::from_u128(7);
        let network = [3, 11, 5, 0, 9, 0x7f, 0xff, 4, 0];
        let drive = [&[4, 1, 20, 0][..], &partition.to_bytes_le(), &[0x7f, 0xff, 4, 0]].concat();
        let store = [
            variable(0x3d, GLOBAL, "BootOrder", &[9, 9]),
            variable(LEAVING, GLOBAL, "Boot0001", b"old"),
            variable(ADDED, GLOBAL, "Boot0001", &option("System", &drive)),
            variable(ADDED, GLOBAL, "Boot000A", &option("PXE", &network)),
            variable(ADDED, STORE, "Boot0001", b"somebody else's"),
            variable(ADDED, GLOBAL, "BootOrder", &[10, 0, 1, 0]),
        ];
        let header = [&STORE.to_bytes_le()[..], &[0; 12]].concat();
        let flash = [&[0; 72][..], &header, &store.concat(), &[0xff; 200]].concat();
        let order = Variables::parse(&flash).unwrap().boot_order().unwrap();
        assert_eq!(order.iter().map(|entry| entry.name.as_str()).collect::<Vec<_>>(), ["PXE", "System"]);
        assert_eq!([0, 1].map(|n| order[n].has_node(3, 11)), [true, false]);
        assert_eq!([0, 1].map(|n| order[n].leads_to(partition)), [false, true]);
        assert!(Variables::parse(&[0; 100]).is_err());
    }
}
