//! What the build is doing, one line a step, on standard error.

use std::time::Instant;

/// Prints steps with the seconds since the start.
#[derive(Debug)]
pub struct Progress {
    begun: Option<Instant>,
}

impl Progress {
    /// Prints from now on.
    #[must_use]
    pub fn to_stderr() -> Self {
        Progress { begun: Some(Instant::now()) }
    }

    /// Prints nothing.
    #[must_use]
    pub fn silent() -> Self {
        Progress { begun: None }
    }

    /// Tells the step that begins.
    pub fn step(&self, text: &str) {
        if let Some(begun) = self.begun {
            eprintln!("[{:>4} s] {text}", begun.elapsed().as_secs());
        }
    }
}
