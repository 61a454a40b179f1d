//! How commands fail: what, and what to do next, with an exit code scripts can rely on.

use std::io::{self, Write as _};
use std::process::ExitCode;

use crate::admin::Problem;

/// Why a command did not do what it was asked.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The operation failed: 1.
    Failed {
        /// What.
        problem: String,
        /// What to do.
        hint: String,
    },
    /// Command line or file not valid; nothing was changed: 2.
    Invalid {
        /// Flag, file and line, or field at fault.
        place: String,
        /// What is wrong.
        problem: String,
        /// What to do.
        hint: String,
    },
    /// The controller cannot be reached: 3.
    Unreachable {
        /// How it was tried, and what happened.
        problem: String,
        /// What to do.
        hint: String,
    },
    /// No such object: 4.
    NotFound {
        /// Which.
        problem: String,
        /// What to do.
        hint: String,
    },
    /// Whoever read our output has left: no error.
    OutputClosed,
}

impl Failure {
    pub(crate) fn failed(problem: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Failed { problem: problem.into(), hint: hint.into() }
    }

    pub(crate) fn invalid(
        place: impl Into<String>,
        problem: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self::Invalid { place: place.into(), problem: problem.into(), hint: hint.into() }
    }

    /// What the controller answered.
    pub(crate) fn answered(status: u16, error: Problem) -> Self {
        let Problem { field, problem, hint } = error;
        match status {
            404 => Self::NotFound { problem, hint },
            400 | 413 | 422 => Self::Invalid { place: field, problem, hint },
            _ => Self::Failed { problem, hint },
        }
    }

    /// Prefixes the place, such as a file and line, of an invalid input.
    pub(crate) fn within(self, outer: &str) -> Self {
        match self {
            Self::Invalid { place, problem, hint } if place.is_empty() => {
                Self::Invalid { place: outer.to_owned(), problem, hint }
            }
            Self::Invalid { place, problem, hint } => {
                Self::Invalid { place: format!("{outer}: {place}"), problem, hint }
            }
            other => other,
        }
    }

    /// Tells the operator, and gives the exit code.
    pub(super) fn report(self) -> ExitCode {
        let (code, text, hint) = match self {
            Self::OutputClosed => return ExitCode::SUCCESS,
            Self::Failed { problem, hint } => (1, problem, hint),
            Self::Invalid { place, problem, hint } if place.is_empty() => (2, problem, hint),
            Self::Invalid { place, problem, hint } => (2, format!("{place}: {problem}"), hint),
            Self::Unreachable { problem, hint } => (3, problem, hint),
            Self::NotFound { problem, hint } => (4, problem, hint),
        };
        let next = if hint.is_empty() { String::new() } else { format!("  next: {hint}\n") };
        // Where nobody can be told, the exit code still tells.
        let _ = write!(io::stderr(), "error: {text}\n{next}");
        ExitCode::from(code)
    }
}

impl From<io::Error> for Failure {
    /// Errors of writing output; files are reported where they are read.
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            Self::OutputClosed
        } else {
            Self::failed(format!("cannot write the output: {error}"), "check where it goes")
        }
    }
}
