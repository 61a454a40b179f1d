//! The unwinder for a standard library built from source: LLVM's `libunwind.a` and the two functions of
//! glibc it was compiled against. gcc's own unwinder does not serve: it needs glibc's `_dl_find_object`.

use super::AgentBuildError;
use crate::command::{Command, SHORT};
use crate::debian::Packages;
use std::path::{Path, PathBuf};

/// Its file is unpacked, not installed: it conflicts with other libunwind development packages.
const PACKAGE: &str = "libunwind-19-dev";
const SHIM: &str = include_str!("fortify.c");

/// Makes `directory` hold a `libunwind.a` that links with musl, and returns it. Kept once made, since a new
/// file would rebuild everything.
pub(super) fn prepare(
    directory: &Path,
    musl_gcc: &Path,
    packages: &Packages,
) -> Result<PathBuf, AgentBuildError> {
    let done = directory.join("libunwind.a");
    if done.is_file() {
        return Ok(directory.to_owned());
    }
    let file = |what: &'static str, path: &Path| {
        let path = path.to_owned();
        move |source| AgentBuildError::File { what, path, source }
    };
    std::fs::create_dir_all(directory).map_err(file("make", directory))?;
    let archive = find_archive(&packages.unpack(&packages.download(PACKAGE)?)?)?;
    let (source, object) = (directory.join("fortify.c"), directory.join("fortify.o"));
    std::fs::write(&source, SHIM).map_err(file("write", &source))?;
    // Not fortified itself, or it would call what it is to replace.
    Command::new(musl_gcc, SHORT)
        .args(["-O2", "-U_FORTIFY_SOURCE", "-c"])
        .arg(&source)
        .arg("-o")
        .arg(&object)
        .output()?;
    let partial = directory.join("libunwind.a.partial");
    std::fs::copy(&archive, &partial).map_err(file("copy", &archive))?;
    Command::new("ar", SHORT).arg("rD").arg(&partial).arg(&object).output()?;
    std::fs::rename(&partial, &done).map_err(file("write", &done))?;
    Ok(directory.to_owned())
}

/// `usr/lib/llvm-19/lib/libunwind.a` in the unpacked package.
fn find_archive(root: &Path) -> Result<PathBuf, AgentBuildError> {
    let path = root.join("usr/lib/llvm-19/lib/libunwind.a");
    match std::fs::metadata(&path) {
        Ok(_) => Ok(path),
        Err(source) => Err(AgentBuildError::File { what: "find", path, source }),
    }
}
