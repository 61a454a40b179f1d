//! What a kernel module says about itself in its `.modinfo` section: NUL-separated `key=value` strings.
//!
//! This is the source that `depmod` reads too, so an unpacked kernel package needs no `depmod` run, and
//! the result does not depend on which `kmod` the build machine has.

use crate::elf::{Elf, ElfError};

/// Why a module could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModinfoError {
    /// The file is no ELF file for this machine, or is cut short.
    #[error(transparent)]
    Elf(#[from] ElfError),
    /// The file has no `.modinfo` section, so it is no kernel module.
    #[error("no .modinfo section: not a kernel module")]
    NoModinfo,
}

/// One module's declarations, in the order of the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModInfo {
    /// Its own name, when the kernel that built it wrote one (since 4.12).
    pub name: Option<String>,
    /// Modules whose symbols it uses; it cannot load before them.
    pub depends: Vec<String>,
    /// Device patterns (`pci:v00008086d…`) and names (`fs-ext4`) it answers to.
    pub aliases: Vec<String>,
    /// Modules or aliases it works better with, loaded before it when present.
    pub pre: Vec<String>,
    /// The same, loaded after it.
    pub post: Vec<String>,
    /// Firmware files it may ask for, relative to `/lib/firmware`.
    pub firmware: Vec<String>,
}

impl ModInfo {
    /// Reads the declarations out of a module file (`.ko`, uncompressed).
    ///
    /// # Errors
    /// When the bytes are no x86-64 ELF file or have no `.modinfo`.
    pub fn from_module(bytes: &[u8]) -> Result<ModInfo, ModinfoError> {
        let section = Elf::parse(bytes)?.section(".modinfo")?.ok_or(ModinfoError::NoModinfo)?;
        Ok(ModInfo::from_section(section))
    }

    /// Reads the section's bytes. Unknown keys and malformed strings are passed over, as the kernel does.
    #[must_use]
    pub fn from_section(section: &[u8]) -> ModInfo {
        let mut info = ModInfo::default();
        for entry in section.split(|byte| *byte == 0) {
            let Some((key, value)) = std::str::from_utf8(entry).ok().and_then(|text| text.split_once('='))
            else {
                continue;
            };
            match key {
                "name" => info.name = Some(canonical(value)),
                "depends" => {
                    info.depends.extend(value.split(',').filter(|name| !name.is_empty()).map(canonical));
                }
                "alias" => info.aliases.push(value.to_owned()),
                "softdep" => info.add_softdep(value),
                "firmware" => info.firmware.push(value.to_owned()),
                _ => {}
            }
        }
        info
    }

    /// `pre: a b post: c`; words before the first marker mean nothing.
    fn add_softdep(&mut self, value: &str) {
        let mut post = None;
        for word in value.split_whitespace() {
            match word {
                "pre:" => post = Some(false),
                "post:" => post = Some(true),
                name => match post {
                    Some(true) => self.post.push(name.to_owned()),
                    Some(false) => self.pre.push(name.to_owned()),
                    None => {}
                },
            }
        }
    }
}

/// The one spelling of a module's name: `crc32c-intel.ko` is known to the kernel as `crc32c_intel`.
#[must_use]
pub fn canonical(name: &str) -> String {
    name.trim().replace('-', "_")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_elf::ElfFixture;
    use proptest::prelude::*;

    #[test]
    fn a_module_tells_its_name_needs_aliases_and_firmware() {
        let bytes = ElfFixture::module(&[
            "softdep=pre: crypto-crc32c post: zram lz4",
            "license=GPL",
            "alias=fs-ext4",
            "alias=pci:v00001234d*",
            "depends=jbd2,mbcache,crc16",
            "firmware=bnx2x/bnx2x-e2-7.13.15.0.fw",
            "name=crc32c-intel",
        ]);
        let info = ModInfo::from_module(&bytes).expect("valid module");
        assert_eq!(
            info,
            ModInfo {
                name: Some("crc32c_intel".into()),
                depends: vec!["jbd2".into(), "mbcache".into(), "crc16".into()],
                aliases: vec!["fs-ext4".into(), "pci:v00001234d*".into()],
                pre: vec!["crypto-crc32c".into()],
                post: vec!["zram".into(), "lz4".into()],
                firmware: vec!["bnx2x/bnx2x-e2-7.13.15.0.fw".into()],
            }
        );
    }

    #[test]
    fn empty_depends_means_none() {
        assert_eq!(ModInfo::from_section(b"depends=\0name=x\0").depends, Vec::<String>::new());
    }

    #[test]
    fn malformed_strings_are_passed_over() {
        let info = ModInfo::from_section(b"\xff\xfe=1\0no equals sign\0=\0softdep=stray\0alias=a=b\0");
        assert_eq!(info, ModInfo { aliases: vec!["a=b".into()], ..ModInfo::default() });
    }

    #[test]
    fn a_program_is_no_module() {
        let bytes = ElfFixture::default().section(".text", b"").build();
        assert_eq!(ModInfo::from_module(&bytes), Err(ModinfoError::NoModinfo));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = ModInfo::from_section(&bytes);
            let _ = ModInfo::from_module(&bytes);
        }

        #[test]
        fn truncated_modules_never_panic(keep in 0_usize..600) {
            let bytes = ElfFixture::module(&["name=x", "depends=y", "firmware=z"]);
            let _ = ModInfo::from_module(&bytes[..keep.min(bytes.len())]);
        }
    }
}
