//! Writing results: colour on terminals only, and no panic when the reader has left.

use std::io::{self, Write as _};

use clap::ValueEnum;
use farrier_shared::contract::Name;
use farrier_shared::resource::HostState;
use serde::Serialize;

use super::failure::Failure;

/// How results are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Columns, for people.
    #[default]
    Table,
    /// JSON.
    Json,
    /// YAML.
    Yaml,
}

/// How a command tells what it did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum DoneFormat {
    /// A sentence, for people.
    #[default]
    Text,
    /// One JSON object a line: kind, namespace, name, result.
    Json,
}

/// What a command did to an object.
#[derive(Debug, Serialize)]
pub(crate) struct Done<'a> {
    /// `host`, `machine` or `secret`.
    pub(crate) kind: String,
    /// Its namespace.
    pub(crate) namespace: &'a Name,
    /// Its name.
    pub(crate) name: &'a Name,
    /// In one or a few words, such as `created`.
    pub(crate) result: &'a str,
}

/// Standard output.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    terminal: bool,
    colour: bool,
}

impl Output {
    /// Standard output, which is a terminal or not.
    pub(crate) fn new(terminal: bool) -> Self {
        let refused = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
        Self { terminal, colour: terminal && !refused }
    }

    /// Whether people watch.
    pub(crate) fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// Writes a line.
    pub(crate) fn line(&self, text: impl AsRef<str>) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        writeln!(out, "{}", text.as_ref())?;
        Ok(out.flush()?)
    }

    /// Tells what was done; `text` for people.
    pub(crate) fn done(&self, format: DoneFormat, done: &Done<'_>, text: &str) -> Result<(), Failure> {
        match format {
            DoneFormat::Text => self.line(text),
            DoneFormat::Json => self.line(serde_json::to_string(done).map_err(|e| {
                Failure::failed(format!("cannot show this: {e}"), "try without --output json")
            })?),
        }
    }

    /// Writes a value as JSON or YAML.
    pub(crate) fn value<T: Serialize>(&self, value: &T, format: Format) -> Result<(), Failure> {
        let unshown = |e: &dyn std::fmt::Display| {
            Failure::failed(format!("cannot show this: {e}"), "try --output json")
        };
        let text = match format {
            Format::Yaml => serde_saphyr::to_string(value).map_err(|e| unshown(&e))?,
            Format::Json | Format::Table => serde_json::to_string_pretty(value).map_err(|e| unshown(&e))?,
        };
        self.line(text.trim_end())
    }

    /// A state padded to `width`, coloured by how good it is.
    pub(crate) fn state(&self, state: HostState, width: usize) -> String {
        let shown = if state == HostState::New { "New" } else { state.as_str() };
        let padded = format!("{shown:width$}");
        let colour = match state {
            HostState::Ready => "32",
            HostState::Error => "31",
            HostState::InUse | HostState::Inspecting | HostState::Deploying => "33",
            HostState::New | HostState::Available => return padded,
        };
        if self.colour { format!("\u{1b}[{colour}m{padded}\u{1b}[0m") } else { padded }
    }
}

/// Foreign text fit for one terminal line.
pub(crate) fn printable(text: &str) -> String {
    // Marks of direction would show the rest of the line in another order.
    let acts = |c: char| {
        c.is_control()
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.chars().map(|c| if acts(c) { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_text_can_neither_steer_a_terminal_nor_turn_its_line_around() {
        assert_eq!(printable("a\u{1b}[31m\r\nb\u{202e}c\u{2067}ü"), "a [31m  b c ü");
    }
}
