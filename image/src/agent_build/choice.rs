//! Which toolchain builds the agent: a decision over what was found.

use super::{AgentBuildError, TARGET};
use std::path::PathBuf;

/// Which toolchain the operator wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Toolchain {
    /// rustup's where it has or can add the target, else Debian's.
    #[default]
    Auto,
    /// The active toolchain, with the standard library it ships for the target.
    Rustup,
    /// Debian's rustc-web, with the standard library built from source.
    Debian,
}

/// A cargo and the compiler of the same origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compiler {
    /// Absolute path of cargo.
    pub cargo: PathBuf,
    /// Absolute path of rustc.
    pub rustc: PathBuf,
}

/// What the machine has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// The active toolchain when its standard library for the target is installed; else why not.
    pub active: Result<Compiler, String>,
    /// Debian's toolchain when it is complete with source; else the packages to install.
    pub debian: Result<Compiler, Vec<&'static str>>,
    /// The musl C compiler, for the agent's C parts.
    pub musl_gcc: Option<PathBuf>,
}

/// Where the standard library comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StandardLibrary {
    /// Installed with the toolchain.
    Prebuilt,
    /// Built from the toolchain's source on the way.
    FromSource,
}

/// The toolchain to use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// cargo and rustc.
    pub compiler: Compiler,
    /// Its standard library.
    pub library: StandardLibrary,
    /// The musl C compiler.
    pub musl_gcc: PathBuf,
    /// What is used and why, for the progress line and the manifest.
    pub reason: String,
}

/// Picks the toolchain.
///
/// # Errors
/// When none fits, with everything that was tried and the packages that would help.
pub fn choose(wanted: Toolchain, probe: &Probe) -> Result<Choice, AgentBuildError> {
    let mut reasons = Vec::new();
    if probe.musl_gcc.is_none() {
        reasons.push("- no musl-gcc for the agent's C parts: install package musl-tools".to_owned());
    }
    let pick = |compiler: &Compiler, library, reason: String| {
        let (compiler, musl_gcc) = (compiler.clone(), probe.musl_gcc.clone()?);
        Some(Choice { compiler, library, musl_gcc, reason })
    };
    if wanted != Toolchain::Debian {
        match &probe.active {
            Ok(compiler) => {
                let reason = format!("built with the toolchain's own {TARGET} standard library");
                if let Some(choice) = pick(compiler, StandardLibrary::Prebuilt, reason) {
                    return Ok(choice);
                }
            }
            Err(why) => reasons.push(format!("- the active toolchain: {why}")),
        }
    }
    if wanted != Toolchain::Rustup {
        match &probe.debian {
            Ok(compiler) => {
                let why = match (wanted, &probe.active) {
                    (Toolchain::Auto, Err(why)) => format!("the active toolchain: {why}"),
                    _ => "asked for".to_owned(),
                };
                let reason =
                    format!("built with Debian's rustc-web and a standard library from source ({why})");
                if let Some(choice) = pick(compiler, StandardLibrary::FromSource, reason) {
                    return Ok(choice);
                }
            }
            Err(missing) => {
                reasons.push(format!("- Debian's toolchain: install packages {}", missing.join(" ")));
            }
        }
    }
    Err(AgentBuildError::NoToolchain { reasons })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compiler(prefix: &str) -> Compiler {
        Compiler { cargo: PathBuf::from(format!("{prefix}/cargo")), rustc: format!("{prefix}/rustc").into() }
    }

    fn probe(active: bool, debian: bool, musl_gcc: bool) -> Probe {
        Probe {
            active: if active { Ok(compiler("/rustup")) } else { Err("rustup cannot add it".into()) },
            debian: if debian { Ok(compiler("/usr/bin")) } else { Err(vec!["rustc-web", "cargo-web"]) },
            musl_gcc: musl_gcc.then(|| "/usr/bin/musl-gcc".into()),
        }
    }

    #[test]
    fn the_first_toolchain_that_can_is_taken_whole() {
        use StandardLibrary::{FromSource, Prebuilt};
        use Toolchain::{Auto, Debian, Rustup};
        let cases = [
            (Auto, probe(true, true, true), Some(("/rustup", Prebuilt))),
            (Auto, probe(true, false, true), Some(("/rustup", Prebuilt))),
            (Auto, probe(false, true, true), Some(("/usr/bin", FromSource))),
            (Debian, probe(true, true, true), Some(("/usr/bin", FromSource))),
            (Rustup, probe(false, true, true), None),
            (Debian, probe(true, false, true), None),
            (Auto, probe(false, false, true), None),
            (Auto, probe(true, true, false), None),
        ];
        for (wanted, probe, expected) in cases {
            let choice = choose(wanted, &probe).ok();
            let got = choice.map(|choice| (choice.compiler, choice.library));
            assert_eq!(got, expected.map(|(at, library)| (compiler(at), library)), "{wanted:?} {probe:?}");
        }
    }

    #[test]
    fn the_reason_tells_why_the_first_way_was_not_taken() {
        let choice = choose(Toolchain::Auto, &probe(false, true, true)).expect("Debian's");
        assert!(choice.reason.contains("rustup cannot add it"), "{}", choice.reason);
    }

    #[test]
    fn a_refusal_names_what_was_tried_and_what_to_install() {
        let error = choose(Toolchain::Auto, &probe(false, false, false)).expect_err("none").to_string();
        for part in ["rustup cannot add it", "rustc-web cargo-web", "musl-tools"] {
            assert!(error.contains(part), "{error} should say {part}");
        }
    }
}
