//! What the machine has to build the agent with. Looks only, but for `rustup target add`.

use super::TARGET;
use super::choice::{Compiler, Probe, Toolchain};
use crate::command::{Command, SHORT, find_program};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// rustup gets this long to download a standard library (about 40 MB). On a network that swallows packets
/// it would wait for minutes, and there is another way.
const TARGET_ADD: Duration = Duration::from_secs(45);
/// Debian's toolchain is looked for here and nowhere else: PATH usually finds rustup's first.
const DEBIAN_BIN: &str = "/usr/bin";

/// Looks for both toolchains, or for the one wanted.
pub(super) fn look(wanted: Toolchain) -> Probe {
    Probe {
        active: if wanted == Toolchain::Debian { Err("not asked for".into()) } else { active() },
        debian: debian(Path::new(DEBIAN_BIN)),
        musl_gcc: find_program("musl-gcc"),
    }
}

fn active() -> Result<Compiler, String> {
    let compiler = active_compiler().ok_or("there is no cargo and rustc")?;
    let library = sysroot(&compiler.rustc)?.join("lib/rustlib").join(TARGET).join("lib");
    if has_std(&library) {
        return Ok(compiler);
    }
    let rustup =
        find_program("rustup").ok_or("it has no standard library for the target, and there is no rustup")?;
    Command::new(rustup, TARGET_ADD)
        .args(["target", "add", TARGET])
        .output()
        .map_err(|error| format!("rustup cannot add the target ({})", first_line(&error.to_string())))?;
    if has_std(&library) { Ok(compiler) } else { Err("rustup added the target to another toolchain".into()) }
}

/// The toolchain this program was started with under `cargo run`, else the one rustup names, else PATH's.
fn active_compiler() -> Option<Compiler> {
    let pair = |cargo: PathBuf| {
        let rustc = cargo.with_file_name("rustc");
        (cargo.is_file() && rustc.is_file()).then_some(Compiler { cargo, rustc })
    };
    let from_rustup = || {
        let out = Command::new(find_program("rustup")?, SHORT).args(["which", "cargo"]).output().ok()?;
        Some(PathBuf::from(String::from_utf8_lossy(&out).trim()))
    };
    std::env::var_os("CARGO")
        .map(PathBuf::from)
        .and_then(pair)
        .or_else(|| from_rustup().and_then(pair))
        .or_else(|| find_program("cargo").and_then(pair))
}

/// Debian's toolchain with the source of its standard library, or the packages that are missing.
fn debian(bin: &Path) -> Result<Compiler, Vec<&'static str>> {
    let compiler = Compiler { cargo: bin.join("cargo"), rustc: bin.join("rustc") };
    let source = || {
        let root = sysroot(&compiler.rustc).ok()?;
        root.join("lib/rustlib/src/rust/library/std/Cargo.toml").is_file().then_some(())
    };
    let missing: Vec<&'static str> = [
        ("rustc-web", compiler.rustc.is_file()),
        ("cargo-web", compiler.cargo.is_file()),
        ("rust-web-src", compiler.rustc.is_file() && source().is_some()),
    ]
    .into_iter()
    .filter_map(|(package, there)| (!there).then_some(package))
    .collect();
    if missing.is_empty() { Ok(compiler) } else { Err(missing) }
}

fn sysroot(rustc: &Path) -> Result<PathBuf, String> {
    let out = Command::new(rustc, SHORT)
        .env_remove("LD_LIBRARY_PATH")
        .env_remove("RUSTUP_TOOLCHAIN")
        .args(["--print", "sysroot"])
        .output()
        .map_err(|error| error.to_string())?;
    Ok(PathBuf::from(String::from_utf8_lossy(&out).trim()))
}

/// Whether a toolchain's library directory holds a compiled standard library.
fn has_std(library: &Path) -> bool {
    std::fs::read_dir(library).is_ok_and(|entries| {
        entries.flatten().any(|entry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            name.starts_with("libstd-") && name.ends_with(".rlib")
        })
    })
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_standard_library_is_its_compiled_archive() {
        let scratch = tempfile::tempdir().expect("scratch");
        assert!(!has_std(&scratch.path().join("absent")));
        std::fs::write(scratch.path().join("libstd-1234.so"), "").expect("file");
        assert!(!has_std(scratch.path()));
        std::fs::write(scratch.path().join("libstd-1234.rlib"), "").expect("file");
        assert!(has_std(scratch.path()));
    }

    #[test]
    fn a_machine_without_debians_toolchain_gets_the_packages_to_install() {
        let scratch = tempfile::tempdir().expect("scratch");
        assert_eq!(debian(scratch.path()), Err(vec!["rustc-web", "cargo-web", "rust-web-src"]));
    }
}
