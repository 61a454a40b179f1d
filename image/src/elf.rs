//! Just enough of ELF64 to answer two questions about files we ship: does this program need
//! anything but the kernel, and what does this section hold.
//!
//! Every offset comes from the file and is checked, so arbitrary bytes give an error, never a panic.

/// Why bytes are not an x86-64 ELF file that can be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ElfError {
    /// The first bytes are not the ELF magic.
    #[error("not an ELF file: expected it to start with 7f 45 4c 46")]
    NotElf,
    /// Another class, byte order or machine than 64-bit little-endian x86-64.
    #[error("ELF for another machine: expected 64-bit little-endian x86-64 (machine 62), got {got}")]
    OtherMachine {
        /// What the header says instead.
        got: String,
    },
    /// A table or a section lies outside the file.
    #[error("ELF file is cut short or corrupt: {what} at offset {offset} is outside its {len} bytes")]
    OutOfBounds {
        /// What was to be read.
        what: &'static str,
        /// Where the file says it is, in bytes from its start.
        offset: u64,
        /// Length of the file in bytes.
        len: usize,
    },
}

const MACHINE_X86_64: u16 = 62;
const ET_EXEC: u16 = 2;
const ET_DYN: u16 = 3;
const PT_DYNAMIC: u32 = 2;
const PT_INTERP: u32 = 3;
const DT_NEEDED: u64 = 1;
const SHT_NOBITS: u32 = 8;
/// Bytes of one program header, section header and dynamic entry in ELF64.
const PROGRAM_HEADER: usize = 56;
const SECTION_HEADER: usize = 64;
const DYNAMIC_ENTRY: usize = 16;

/// A parsed ELF header over the file's bytes.
#[derive(Debug, Clone, Copy)]
pub struct Elf<'a> {
    bytes: &'a [u8],
    kind: u16,
    program_headers: (u64, u16),
    section_headers: (u64, u16),
    section_names: u16,
}

impl<'a> Elf<'a> {
    /// Checks the header of `bytes`.
    ///
    /// # Errors
    /// When it is no 64-bit little-endian x86-64 ELF file, or shorter than a header.
    pub fn parse(bytes: &'a [u8]) -> Result<Elf<'a>, ElfError> {
        if !bytes.starts_with(b"\x7fELF") {
            return Err(ElfError::NotElf);
        }
        let file = File { bytes };
        let ident = file.at("identification", 0, 16)?;
        if ident[4] != 2 || ident[5] != 1 {
            return Err(ElfError::OtherMachine {
                got: format!("class {}, byte order {}", ident[4], ident[5]),
            });
        }
        let machine = file.u16("machine", 18)?;
        if machine != MACHINE_X86_64 {
            return Err(ElfError::OtherMachine { got: format!("machine {machine}") });
        }
        Ok(Elf {
            bytes,
            kind: file.u16("file type", 16)?,
            program_headers: (file.u64("program header offset", 32)?, file.u16("program header count", 56)?),
            section_headers: (file.u64("section header offset", 40)?, file.u16("section header count", 60)?),
            section_names: file.u16("section name index", 62)?,
        })
    }

    /// Whether it is a program, at fixed addresses or position independent, rather than an object file.
    #[must_use]
    pub fn is_program(&self) -> bool {
        matches!(self.kind, ET_EXEC | ET_DYN)
    }

    /// What the program asks to be loaded with it: its interpreter (the dynamic loader) and one line
    /// per shared library. Empty for a static program, position independent or not.
    ///
    /// # Errors
    /// When a program header or a segment lies outside the file.
    pub fn runtime_needs(&self) -> Result<Vec<String>, ElfError> {
        let file = File { bytes: self.bytes };
        let mut needs = Vec::new();
        for index in 0..self.program_headers.1 {
            let header = table_entry(self.program_headers.0, index, PROGRAM_HEADER);
            let kind = file.u32("program header", header)?;
            if kind != PT_INTERP && kind != PT_DYNAMIC {
                continue;
            }
            let offset = file.u64("segment offset", header.saturating_add(8))?;
            let size = file.u64("segment size", header.saturating_add(32))?;
            let segment = file.at("segment", offset, size)?;
            if kind == PT_INTERP {
                let path = segment.split(|byte| *byte == 0).next().unwrap_or_default();
                needs.push(format!("interpreter {}", String::from_utf8_lossy(path)));
            } else {
                let libraries = segment
                    .chunks_exact(DYNAMIC_ENTRY)
                    .filter(|entry| entry[..8] == DT_NEEDED.to_le_bytes())
                    .count();
                needs.extend((0..libraries).map(|_| "a shared library".to_owned()));
            }
        }
        Ok(needs)
    }

    /// The bytes of the section called `name`, or `None` when there is none.
    ///
    /// # Errors
    /// When the section table or the section lies outside the file.
    pub fn section(&self, name: &str) -> Result<Option<&'a [u8]>, ElfError> {
        let file = File { bytes: self.bytes };
        if self.section_headers.1 == 0 {
            return Ok(None);
        }
        let names = self.section_bytes(&file, self.section_names)?;
        for index in 0..self.section_headers.1 {
            let header = table_entry(self.section_headers.0, index, SECTION_HEADER);
            let start = usize::try_from(file.u32("section name", header)?).unwrap_or(usize::MAX);
            let found = names.get(start..).and_then(|tail| tail.split(|byte| *byte == 0).next());
            if found == Some(name.as_bytes()) {
                return self.section_bytes(&file, index).map(Some);
            }
        }
        Ok(None)
    }

    fn section_bytes(&self, file: &File<'a>, index: u16) -> Result<&'a [u8], ElfError> {
        let header = table_entry(self.section_headers.0, index, SECTION_HEADER);
        if file.u32("section type", header.saturating_add(4))? == SHT_NOBITS {
            return Ok(&[]);
        }
        let offset = file.u64("section offset", header.saturating_add(24))?;
        let size = file.u64("section size", header.saturating_add(32))?;
        file.at("section", offset, size)
    }
}

fn table_entry(start: u64, index: u16, size: usize) -> u64 {
    let size = u64::try_from(size).unwrap_or(u64::MAX);
    start.saturating_add(u64::from(index).saturating_mul(size))
}

/// Bounds-checked little-endian reads.
struct File<'a> {
    bytes: &'a [u8],
}

impl<'a> File<'a> {
    fn at(&self, what: &'static str, offset: u64, size: u64) -> Result<&'a [u8], ElfError> {
        let outside = ElfError::OutOfBounds { what, offset, len: self.bytes.len() };
        let (Ok(start), Ok(size)) = (usize::try_from(offset), usize::try_from(size)) else {
            return Err(outside);
        };
        start.checked_add(size).and_then(|end| self.bytes.get(start..end)).ok_or(outside)
    }

    fn array<const N: usize>(&self, what: &'static str, offset: u64) -> Result<[u8; N], ElfError> {
        let mut out = [0; N];
        out.copy_from_slice(self.at(what, offset, u64::try_from(N).unwrap_or(u64::MAX))?);
        Ok(out)
    }

    fn u16(&self, what: &'static str, offset: u64) -> Result<u16, ElfError> {
        self.array(what, offset).map(u16::from_le_bytes)
    }

    fn u32(&self, what: &'static str, offset: u64) -> Result<u32, ElfError> {
        self.array(what, offset).map(u32::from_le_bytes)
    }

    fn u64(&self, what: &'static str, offset: u64) -> Result<u64, ElfError> {
        self.array(what, offset).map(u64::from_le_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_elf::ElfFixture;
    use proptest::prelude::*;

    #[test]
    fn a_program_is_static_only_without_interpreter_and_libraries() {
        let cases: [(&str, ElfFixture, usize); 4] = [
            ("no program headers", ElfFixture::default(), 0),
            ("static-pie: a dynamic segment without libraries", ElfFixture::default().dynamic(&[6, 5]), 0),
            ("interpreter", ElfFixture::default().interpreter("/lib/ld-musl-x86_64.so.1"), 1),
            (
                "interpreter and libraries",
                ElfFixture::default().interpreter("/lib64/ld.so").dynamic(&[1, 1, 5]),
                3,
            ),
        ];
        for (name, fixture, expected) in cases {
            let bytes = fixture.build();
            let needs = Elf::parse(&bytes).and_then(|elf| elf.runtime_needs()).expect(name);
            assert_eq!(needs.len(), expected, "{name}: {needs:?}");
        }
    }

    #[test]
    fn the_interpreter_is_named() {
        let bytes = ElfFixture::default().interpreter("/lib/ld-musl-x86_64.so.1").build();
        let needs = Elf::parse(&bytes).and_then(|elf| elf.runtime_needs()).expect("valid");
        assert_eq!(needs, ["interpreter /lib/ld-musl-x86_64.so.1"]);
    }

    #[test]
    fn this_very_test_program_needs_an_interpreter() {
        let bytes = std::fs::read(std::env::current_exe().expect("own path")).expect("own bytes");
        let needs = Elf::parse(&bytes).and_then(|elf| elf.runtime_needs()).expect("valid ELF");
        assert!(needs.iter().any(|need| need.starts_with("interpreter ")), "{needs:?}");
    }

    #[test]
    fn sections_are_found_by_name() {
        let bytes = ElfFixture::default().section(".text", b"code").section(".modinfo", b"a=b\0").build();
        let elf = Elf::parse(&bytes).expect("valid");
        assert_eq!(elf.section(".modinfo"), Ok(Some(b"a=b\0".as_slice())));
        assert_eq!(elf.section(".data"), Ok(None));
    }

    #[test]
    fn other_files_are_refused_with_what_they_are() {
        let mut arm = ElfFixture::default().build();
        arm[18] = 183;
        let mut class32 = ElfFixture::default().build();
        class32[4] = 1;
        for (bytes, part) in [
            (b"#!/bin/sh\n".to_vec(), "not an ELF file"),
            (arm, "machine 183"),
            (class32, "class 1"),
            (b"\x7fELF\x02\x01".to_vec(), "cut short"),
        ] {
            let error = Elf::parse(&bytes).expect_err("refused").to_string();
            assert!(error.contains(part), "{error} should say {part}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            if let Ok(elf) = Elf::parse(&bytes) {
                let _ = elf.runtime_needs();
                let _ = elf.section(".modinfo");
            }
        }

        #[test]
        fn a_corrupted_file_never_panics(at in 0_usize..400, value: u8) {
            let mut bytes = ElfFixture::default().interpreter("/lib/ld.so").dynamic(&[1, 5])
                .section(".modinfo", b"name=x\0").build();
            let at = at % bytes.len();
            bytes[at] = value;
            if let Ok(elf) = Elf::parse(&bytes) {
                let _ = elf.runtime_needs();
                let _ = elf.section(".modinfo");
            }
        }
    }
}
