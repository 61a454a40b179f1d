//! Modules of self-built kernels often carry debug information, ten times the size of their code.

use super::tree::TreeError;
use crate::command::{Command, SHORT};
use crate::elf::Elf;
use std::path::Path;

/// The module without debug information. One that has none, as distributions ship them, is returned as it
/// is: any change would break its signature, which kernels under Secure Boot insist on.
///
/// # Errors
/// When `strip` fails on a module that has some.
pub fn without_debug(file: &Path, bytes: Vec<u8>) -> Result<Vec<u8>, TreeError> {
    let has_debug =
        Elf::parse(&bytes).and_then(|elf| elf.section(".debug_info")).is_ok_and(|found| found.is_some());
    if !has_debug {
        return Ok(bytes);
    }
    let failed = |reason: String| TreeError::Strip { path: file.to_owned(), reason };
    let scratch = tempfile::NamedTempFile::new().map_err(|error| failed(error.to_string()))?;
    std::fs::write(scratch.path(), &bytes).map_err(|error| failed(error.to_string()))?;
    Command::new("strip", SHORT)
        .arg("--strip-debug")
        .arg(scratch.path())
        .output()
        .map_err(|error| failed(format!("{error}; package binutils has strip")))?;
    std::fs::read(scratch.path()).map_err(|error| failed(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modinfo::ModInfo;
    use crate::test_elf::ElfFixture;

    #[test]
    fn a_module_without_debug_information_is_not_touched() {
        let module = [ElfFixture::module(&["name=x"]), b"~Module signature appended~\n".to_vec()].concat();
        assert_eq!(without_debug(Path::new("x.ko"), module.clone()).expect("unchanged"), module);
    }

    #[test]
    fn debug_information_goes_and_the_module_stays() {
        let scratch = tempfile::tempdir().expect("scratch");
        let (source, object) = (scratch.path().join("x.s"), scratch.path().join("x.o"));
        let text = ".section .modinfo,\"a\"\n.asciz \"name=x\"\n.section .debug_info,\"\"\n.zero 100000\n";
        std::fs::write(&source, text).expect("source");
        Command::new("as", SHORT).arg(&source).arg("-o").arg(&object).output().expect("assembler");
        let before = std::fs::read(&object).expect("object");
        let after = without_debug(Path::new("x.ko"), before.clone()).expect("stripped");
        assert!(before.len() > 100_000 && after.len() < 10_000, "{} then {}", before.len(), after.len());
        assert_eq!(ModInfo::from_module(&after).expect("module").name.as_deref(), Some("x"));
    }
}
