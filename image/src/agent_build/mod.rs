//! Builds the agent as a static program and proves that it is one.
//!
//! PID 1 of the inspection image has no loader and no libraries, so it is built for
//! `x86_64-unknown-linux-musl`: with the standard library rustup ships where it can be had, else with one
//! built from Debian's source packages. Compiler, cargo and standard library always come from one place.

mod cargo;
mod choice;
pub mod date;
mod probe;
mod unwind;

pub use choice::{Choice, Probe, StandardLibrary, Toolchain, choose};

use crate::command::CommandError;
use crate::debian::{DebianError, Packages};
use crate::elf::{Elf, ElfError};
use crate::manifest::{AgentRecord, FileRecord};
use crate::progress::Progress;
use std::path::{Path, PathBuf};

/// The target triple of the agent.
pub const TARGET: &str = "x86_64-unknown-linux-musl";

/// Why there is no static agent.
#[derive(Debug, thiserror::Error)]
pub enum AgentBuildError {
    /// No toolchain can build it here.
    #[error("no toolchain can build for {TARGET}:\n{}", reasons.join("\n"))]
    NoToolchain {
        /// What was tried, and what to install.
        reasons: Vec<String>,
    },
    /// The directory is not inside this workspace.
    #[error(
        "{} is not inside the workspace (no directory above it holds agent/Cargo.toml); run it there or pass --agent PATH",
        start.display()
    )]
    NoWorkspace {
        /// Where the search began.
        start: PathBuf,
    },
    /// A program failed.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// libunwind's package could not be had.
    #[error("the unwinder's library: {0}")]
    Unwinder(#[from] DebianError),
    /// A file could not be read or written.
    #[error("cannot {what} {}: {source}", path.display())]
    File {
        /// read, write or find.
        what: &'static str,
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// What should be PID 1 is no program for this machine.
    #[error("{} cannot be PID 1: {reason}", path.display())]
    NotAProgram {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The program would need more than the kernel.
    #[error(
        "{} is not static: it needs {}, and the inspection image holds nothing but the agent",
        path.display(),
        needs.join(" and ")
    )]
    NotStatic {
        /// The file.
        path: PathBuf,
        /// Interpreter and libraries.
        needs: Vec<String>,
    },
}

/// How to build the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Root of this workspace.
    pub workspace: PathBuf,
    /// Which toolchain to use.
    pub toolchain: Toolchain,
    /// Before when the agent was not built, in seconds since 1970; 0 when that is not known.
    pub date: u32,
}

/// A program proven to need nothing but the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StaticAgent {
    /// Where it is.
    pub path: PathBuf,
    /// The ELF file.
    pub bytes: Vec<u8>,
    /// Version of the workspace it was built from; none when the file was given.
    pub version: Option<String>,
    /// How it came to be.
    pub built_by: String,
}

impl StaticAgent {
    /// Reads the program and checks that it is one and static.
    ///
    /// # Errors
    /// When it cannot be read, is no x86-64 program, or asks for an interpreter or a shared library.
    pub fn from_file(
        path: &Path,
        version: Option<String>,
        built_by: String,
    ) -> Result<Self, AgentBuildError> {
        let bytes = std::fs::read(path).map_err(|source| AgentBuildError::File {
            what: "read",
            path: path.to_owned(),
            source,
        })?;
        prove_static(path, &bytes)?;
        Ok(StaticAgent { path: path.to_owned(), bytes, version, built_by })
    }

    /// Its line in the manifest.
    #[must_use]
    pub fn record(&self) -> AgentRecord {
        AgentRecord {
            version: self.version.clone(),
            built_by: self.built_by.clone(),
            file: FileRecord::of(&self.bytes),
        }
    }
}

/// Builds the agent with the first toolchain that can, or fails saying what to install.
///
/// # Errors
/// When no toolchain can build it, the build fails, or the result is not static.
pub fn build(
    request: &Request,
    packages: &Packages,
    progress: &Progress,
) -> Result<StaticAgent, AgentBuildError> {
    progress.step(&format!("agent: looking for a toolchain for {TARGET}"));
    let probe = probe::look(request.toolchain);
    let choice = choose(request.toolchain, &probe)?;
    progress.step(&format!("agent: {}", choice.reason));
    let directory = request.workspace.join("target/agent-musl");
    let native = match choice.library {
        StandardLibrary::Prebuilt => None,
        StandardLibrary::FromSource => {
            Some(unwind::prepare(&directory.join("native"), &choice.musl_gcc, packages)?)
        }
    };
    progress.step("agent: compiling (the first time takes several minutes)");
    let program = cargo::run(request, &choice, &directory, native.as_deref())?;
    let agent = StaticAgent::from_file(&program, Some(env!("CARGO_PKG_VERSION").to_owned()), choice.reason)?;
    progress.step(&format!("agent: static, {} bytes", agent.bytes.len()));
    Ok(agent)
}

/// The workspace around `start`: the nearest directory upwards that holds the agent.
///
/// # Errors
/// When there is none.
pub fn find_workspace(start: &Path) -> Result<PathBuf, AgentBuildError> {
    start
        .ancestors()
        .find(|directory| {
            directory.join("agent/Cargo.toml").is_file() && directory.join("Cargo.lock").is_file()
        })
        .map(Path::to_owned)
        .ok_or_else(|| AgentBuildError::NoWorkspace { start: start.to_owned() })
}

fn prove_static(path: &Path, bytes: &[u8]) -> Result<(), AgentBuildError> {
    let refuse = |reason: String| AgentBuildError::NotAProgram { path: path.to_owned(), reason };
    let unreadable = |error: ElfError| refuse(error.to_string());
    let elf = Elf::parse(bytes).map_err(unreadable)?;
    if !elf.is_program() {
        return Err(refuse("it is an object file, not a program".into()));
    }
    let needs = elf.runtime_needs().map_err(unreadable)?;
    if needs.is_empty() { Ok(()) } else { Err(AgentBuildError::NotStatic { path: path.to_owned(), needs }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_elf::ElfFixture;

    fn check(bytes: &[u8]) -> Result<StaticAgent, String> {
        let file = tempfile::NamedTempFile::new().expect("scratch");
        std::fs::write(file.path(), bytes).expect("write");
        StaticAgent::from_file(file.path(), None, "test".into()).map_err(|error| error.to_string())
    }

    #[test]
    fn only_static_programs_become_pid_1() {
        assert!(check(&ElfFixture::default().build()).is_ok());
        let mut object = ElfFixture::default().build();
        object[16] = 1;
        let cases: [(&[u8], &str); 4] = [
            (
                &ElfFixture::default().interpreter("/lib/ld-musl-x86_64.so.1").build(),
                "interpreter /lib/ld-musl",
            ),
            (&ElfFixture::default().dynamic(&[1]).build(), "shared library"),
            (&object, "object file"),
            (b"#!/bin/sh\n", "not an ELF file"),
        ];
        for (bytes, part) in cases {
            let error = check(bytes).expect_err(part);
            assert!(error.contains(part), "{error} should say {part}");
        }
    }

    #[test]
    fn the_workspace_is_found_from_below_and_nowhere_else() {
        let scratch = tempfile::tempdir().expect("scratch");
        let root = scratch.path().join("farrier");
        std::fs::create_dir_all(root.join("agent/src")).expect("dirs");
        std::fs::write(root.join("agent/Cargo.toml"), "").expect("file");
        std::fs::write(root.join("Cargo.lock"), "").expect("file");
        assert_eq!(find_workspace(&root.join("agent/src")).expect("found"), root);
        let error = find_workspace(scratch.path()).expect_err("outside").to_string();
        assert!(error.contains("--agent PATH"), "{error}");
    }
}
