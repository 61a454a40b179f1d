//! SMBIOS structures: a parser that takes whatever firmware wrote and yields what can be read of it.
//!
//! Offsets are those of the DMTF's DSP0134. A table cut short yields every structure up to the cut and what is
//! there of the last; a field beyond the end of a structure is absent.

/// End-of-table structure.
const END: u8 = 127;
/// Type, length, handle.
const HEADER: usize = 4;

/// One structure.
#[derive(Clone, Copy, Debug)]
pub(super) struct Structure<'a> {
    /// Its type.
    pub kind: u8,
    fields: &'a [u8],
    strings: &'a [u8],
}

impl<'a> Structure<'a> {
    /// The byte at an offset.
    pub(super) fn byte(&self, at: usize) -> Option<u8> {
        self.fields.get(at).copied()
    }

    /// The little-endian word at an offset.
    pub(super) fn word(&self, at: usize) -> Option<u16> {
        Some(u16::from_le_bytes(self.fields.get(at..at + 2)?.try_into().ok()?))
    }

    /// The little-endian double word at an offset.
    pub(super) fn dword(&self, at: usize) -> Option<u32> {
        Some(u32::from_le_bytes(self.fields.get(at..at + 4)?.try_into().ok()?))
    }

    /// The string whose number is at an offset: printable, trimmed; empty when absent.
    pub(super) fn string(&self, at: usize) -> String {
        let number = usize::from(self.byte(at).unwrap_or(0));
        let Some(index) = number.checked_sub(1) else { return String::new() };
        let bytes = self.strings.split(|b| *b == 0).nth(index).unwrap_or_default();
        let text: String =
            String::from_utf8_lossy(bytes).chars().filter(|c| !c.is_control() && *c != '\u{fffd}').collect();
        text.trim().to_owned()
    }
}

/// The structures of a table, in order.
pub(super) fn structures(table: &[u8]) -> impl Iterator<Item = Structure<'_>> {
    let mut rest = table;
    std::iter::from_fn(move || {
        let kind = *rest.first()?;
        let length = usize::from(*rest.get(1)?);
        if length < HEADER || kind == END {
            return None;
        }
        let (fields, after) = rest.split_at(length.min(rest.len()));
        // Strings end with an empty one; a structure without strings has two zeroes.
        let end = after.windows(2).position(|pair| pair == [0, 0]);
        let (strings, next) = match end {
            Some(at) => (&after[..at], &after[at + 2..]),
            None => (after, &[][..]),
        };
        rest = next;
        Some(Structure { kind, fields, strings })
    })
}

/// SMBIOS version of the entry point, `major.minor`; [`None`] when it is neither form.
pub(super) fn version(entry_point: &[u8]) -> Option<String> {
    let (major, minor) = if entry_point.starts_with(b"_SM3_") {
        (entry_point.get(7)?, entry_point.get(8)?)
    } else if entry_point.starts_with(b"_SM_") {
        (entry_point.get(6)?, entry_point.get(7)?)
    } else {
        return None;
    };
    Some(format!("{major}.{minor}"))
}

/// Makes tables as firmware does, for tests.
#[cfg(test)]
pub(super) mod build {
    /// A structure with the given bytes after its header, and its strings.
    pub(in crate::facts) fn structure(kind: u8, body: &[u8], strings: &[&str]) -> Vec<u8> {
        let length = u8::try_from(body.len() + 4).unwrap();
        let mut out = vec![kind, length, kind, 0];
        out.extend(body);
        for text in strings {
            out.extend(text.as_bytes());
            out.push(0);
        }
        if strings.is_empty() {
            out.push(0);
        }
        out.push(0);
        out
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::build::structure;
    use super::*;

    fn table() -> Vec<u8> {
        [
            structure(1, &[1, 2, 0, 3], &["QEMU", " Standard PC \u{7}", "S-1"]),
            structure(2, &[], &[]),
            structure(4, &[1, 0x34, 0x12], &["CPU 0"]),
            structure(END, &[], &[]),
            structure(17, &[], &[]),
        ]
        .concat()
    }

    #[test]
    fn structures_come_in_order_up_to_the_end_mark() {
        let table = table();
        let all: Vec<_> = structures(&table).collect();
        assert_eq!(all.iter().map(|s| s.kind).collect::<Vec<_>>(), [1, 2, 4]);
        assert_eq!(all[0].string(4), "QEMU");
        assert_eq!(all[0].string(5), "Standard PC");
        assert_eq!(all[0].string(6), "");
        assert_eq!(all[0].string(7), "S-1");
        assert_eq!((all[2].word(5), all[2].word(6), all[2].dword(4)), (Some(0x1234), None, None));
    }

    #[test]
    fn a_cut_table_yields_what_it_holds() {
        let table = table();
        for cut in 0..table.len() {
            let whole: Vec<_> = structures(&table[..cut]).map(|s| s.kind).collect();
            assert!([1, 2, 4].starts_with(&whole), "cut at {cut}: {whole:?}");
        }
        let cut = &table[..table.iter().position(|b| *b == b'S').unwrap() + 6];
        assert_eq!(structures(cut).next().unwrap().string(5), "Standa");
    }

    #[test]
    fn a_length_below_the_header_ends_the_table() {
        assert_eq!(structures(&[1, 3, 0, 0, 0, 0]).count(), 0);
        assert_eq!(structures(&[1]).count(), 0);
        assert_eq!(structures(&[]).count(), 0);
    }

    #[test]
    fn versions_of_both_entry_points() {
        assert_eq!(version(b"_SM3_\x00\x18\x03\x02\x00").as_deref(), Some("3.2"));
        assert_eq!(version(b"_SM_\x00\x1f\x02\x08").as_deref(), Some("2.8"));
        assert_eq!(version(b"_SM3_"), None);
        assert_eq!(version(b"nonsense"), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_fault(bytes in prop::collection::vec(any::<u8>(), 0..600), at in 0_usize..300) {
            for s in structures(&bytes) {
                let _ = (s.byte(at), s.word(at), s.dword(at), s.string(at));
            }
            let _ = version(&bytes);
        }
    }
}
