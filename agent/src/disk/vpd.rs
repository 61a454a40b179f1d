//! Vital product data of SCSI disks, and of ATA disks behind the kernel's translation (SPC-4 section 7.8, SAT).

use std::fs;
use std::path::Path;

use super::discover::attribute;

/// The pages the kernel keeps of a device.
#[derive(Debug, Default)]
pub(super) struct Pages {
    vendor: String,
    model: String,
    unit_serial: Vec<u8>,
    designators: Vec<u8>,
    ata_information: Vec<u8>,
}

/// What an ATA disk says of itself, at full length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ata {
    pub(super) model: String,
    pub(super) serial: String,
}

impl Pages {
    pub(super) fn read(device: &Path) -> Self {
        let page = |file: &str| fs::read(device.join(file)).unwrap_or_default();
        let raw = |file: &str| fs::read_to_string(device.join(file)).unwrap_or_default();
        Self {
            vendor: raw("vendor").trim_end_matches('\n').to_owned(),
            model: raw("model").trim_end_matches('\n').to_owned(),
            unit_serial: page("vpd_pg80"),
            designators: page("vpd_pg83"),
            ata_information: page("vpd_pg89"),
        }
        .or_wwid(attribute(device, "wwid").as_deref())
    }

    /// Pages with this content.
    #[cfg(any(test, fuzzing))]
    pub(super) fn of(serial: &[u8], designators: &[u8], ata: &[u8], wwid: &str) -> Self {
        Self {
            unit_serial: serial.to_vec(),
            designators: designators.to_vec(),
            ata_information: ata.to_vec(),
            ..Self::default()
        }
        .or_wwid(Some(wwid))
    }

    /// Older kernels show an ATA disk's names only in its `wwid`: `t10.ATA     MODEL(40)SERIAL(20)`.
    fn or_wwid(mut self, wwid: Option<&str>) -> Self {
        if self.ata_information.is_empty()
            && let Some(names) = wwid.and_then(|w| w.strip_prefix("t10.ATA     "))
            && let Some((model, serial)) = names.split_at_checked(40)
        {
            self.ata_information = vec![0; 60 + 512];
            put_swapped(&mut self.ata_information[60 + 20..60 + 40], serial);
            put_swapped(&mut self.ata_information[60 + 54..60 + 94], model);
        }
        self
    }

    /// Page 80h: the unit serial number.
    pub(super) fn serial(&self) -> Option<String> {
        let length = usize::from(u16::from_be_bytes([*self.unit_serial.get(2)?, *self.unit_serial.get(3)?]));
        text(self.unit_serial.get(4..4 + length)?)
    }

    /// Page 89h: IDENTIFY DEVICE, whose words 10–19 and 27–46 hold serial and model with bytes swapped.
    pub(super) fn ata(&self) -> Option<Ata> {
        let identify = self.ata_information.get(60..60 + 512)?;
        let words = |range: std::ops::Range<usize>| {
            let swapped: Vec<u8> = identify[range].chunks_exact(2).flat_map(|w| [w[1], w[0]]).collect();
            text(&swapped)
        };
        Some(Ata { model: words(54..94)?, serial: words(20..40)? })
    }

    /// Page 83h: names of the logical unit, each led by the digit of its kind, as `scsi-*` links have them.
    pub(super) fn scsi_ids(&self) -> Vec<String> {
        let mut ids = Vec::new();
        let mut rest = self.designators.get(4..).unwrap_or_default();
        while let [codes, kind, _, length, tail @ ..] = rest {
            let Some((value, next)) = tail.split_at_checked(usize::from(*length)) else { break };
            rest = next;
            // Association 0 is the logical unit itself; others name ports and targets.
            if kind & 0x30 != 0 {
                continue;
            }
            let value = match codes & 0x0f {
                1 => hex::encode(value),
                _ => text(value).unwrap_or_default(),
            };
            match kind & 0x0f {
                0 => ids.push(format!("0{:<8}{:<16}{value}", self.vendor, self.model)),
                kind @ 1..=3 => ids.push(format!("{kind}{value}")),
                _ => {}
            }
        }
        ids
    }
}

/// Printable text without padding; [`None`] when nothing is left.
fn text(bytes: &[u8]) -> Option<String> {
    let text: String =
        bytes.iter().map(|b| char::from(*b)).filter(|c| c.is_ascii_graphic() || *c == ' ').collect();
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

fn put_swapped(field: &mut [u8], text: &str) {
    field.fill(b' ');
    for (at, byte) in text.bytes().take(field.len()).enumerate() {
        field[at ^ 1] = byte;
    }
}
