//! The cargo command that builds the agent.

use super::choice::{Choice, StandardLibrary};
use super::{AgentBuildError, Request, TARGET};
use crate::command::Command;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// An hour and a half: a first build on one slow core, all dependencies included.
const COMPILE: Duration = Duration::from_secs(5400);
/// Cargo's name of the profile in the root manifest.
const PROFILE: &str = "agent";
/// What could bring another toolchain, target or set of flags into the build. `cargo run` sets some itself.
const FOREIGN: [&str; 9] = [
    "CARGO_BUILD_RUSTFLAGS",
    "CARGO_BUILD_TARGET",
    "CARGO_TARGET_DIR",
    "LD_LIBRARY_PATH",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUSTC_WRAPPER",
    "RUSTFLAGS",
    "RUSTUP_TOOLCHAIN",
    "CARGO",
];

/// Builds and returns the path of the program.
pub(super) fn run(
    request: &Request,
    choice: &Choice,
    directory: &Path,
    native: Option<&Path>,
) -> Result<PathBuf, AgentBuildError> {
    let directory = directory.join(match choice.library {
        StandardLibrary::Prebuilt => "rustup",
        StandardLibrary::FromSource => "debian",
    });
    let mut command = Command::new(&choice.compiler.cargo, COMPILE)
        .current_dir(&request.workspace)
        .env("RUSTC", &choice.compiler.rustc)
        .env("CARGO_ENCODED_RUSTFLAGS", flags(request, native).join("\u{1f}"))
        .env("CC_x86_64_unknown_linux_musl", &choice.musl_gcc)
        .env("SOURCE_DATE_EPOCH", request.date.to_string())
        .args(["build", "--locked", "--package", "farrier-agent", "--bin", "farrier-agent"])
        .args(["--profile", PROFILE, "--target", TARGET, "--target-dir"])
        .arg(&directory);
    for variable in FOREIGN {
        command = command.env_remove(variable);
    }
    if choice.library == StandardLibrary::FromSource {
        command = command
            .env("CARGO_TARGET_X86_64_UNKNOWN_LINUX_MUSL_LINKER", &choice.musl_gcc)
            .env("RUSTC_BOOTSTRAP", "1")
            .arg("-Zbuild-std=std,panic_unwind");
    }
    command.watched()?;
    Ok(directory.join(TARGET).join(PROFILE).join("farrier-agent"))
}

/// rustc's flags: fully static at fixed addresses, and no path of this machine in the result.
fn flags(request: &Request, native: Option<&Path>) -> Vec<String> {
    let mut flags = vec!["-Ctarget-feature=+crt-static".to_owned(), "-Crelocation-model=static".to_owned()];
    if let Some(native) = native {
        // musl-gcc brings its own start files and its unwinder is ours; libgcc has what C code calls.
        flags.push("-Clink-self-contained=no".to_owned());
        flags.push(format!("-Lnative={}", native.display()));
        flags.push("-Clink-arg=-lgcc".to_owned());
    }
    if let Some(home) = cargo_home() {
        flags.push(format!("--remap-path-prefix={}=cargo", home.display()));
    }
    flags.push(format!("--remap-path-prefix={}=farrier", request.workspace.display()));
    flags
}

fn cargo_home() -> Option<PathBuf> {
    let given = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    given.or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cargo")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent_build::Toolchain;

    #[test]
    fn a_library_from_source_links_with_our_unwinder_and_both_are_static() {
        let request = Request { workspace: "/src/farrier".into(), toolchain: Toolchain::Auto, date: 0 };
        let prebuilt = flags(&request, None);
        let from_source = flags(&request, Some(Path::new("/native")));
        for all in [&prebuilt, &from_source] {
            assert!(all.contains(&"-Ctarget-feature=+crt-static".to_owned()), "{all:?}");
            assert!(all.contains(&"--remap-path-prefix=/src/farrier=farrier".to_owned()), "{all:?}");
        }
        assert!(from_source.contains(&"-Lnative=/native".to_owned()), "{from_source:?}");
        assert!(!prebuilt.iter().any(|flag| flag.contains("link-self-contained")), "{prebuilt:?}");
    }
}
