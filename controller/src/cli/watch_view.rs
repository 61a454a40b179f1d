//! What a watch looks like: a line for each change, and on a terminal a bar for each image being written.

use std::collections::BTreeMap;
use std::time::Duration;

use indicatif::{HumanBytes, HumanDuration, MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::failure::Failure;
use super::output::{Output, printable};
use crate::admin::HostLine;

/// Steps of ten per cent, where there is no bar.
const PLAIN_STEP: u64 = 10;

/// Shows the lines of a watch.
pub(super) struct View<'a> {
    output: &'a Output,
    json: bool,
    bars: MultiProgress,
    hosts: BTreeMap<(String, String), Shown>,
}

#[derive(Default)]
struct Shown {
    text: String,
    tenths: Option<u64>,
    bar: Option<ProgressBar>,
}

impl<'a> View<'a> {
    pub(super) fn new(output: &'a Output, json: bool) -> Self {
        let target = if output.is_terminal() && !json {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        Self { output, json, bars: MultiProgress::with_draw_target(target), hosts: BTreeMap::new() }
    }

    pub(super) fn show(&mut self, line: &HostLine) -> Result<(), Failure> {
        if self.json {
            let text = serde_json::to_string(line).map_err(|e| {
                Failure::failed(format!("cannot show a change: {e}"), "try without --output json")
            })?;
            return self.output.line(text);
        }
        let key = (line.namespace.clone(), line.name.clone());
        let shown = self.hosts.entry(key).or_default();
        let tenths = percent(line).map(|p| p / PLAIN_STEP);
        let text = self.output.state(line.state, 11) + &detail(line);
        let plain_progress = !self.output.is_terminal() && tenths != shown.tenths && tenths.is_some();
        if text != shown.text || plain_progress {
            let mut full = format!("{:<20} {text}", line.name);
            if let (false, Some(done)) = (self.output.is_terminal(), line.bytes) {
                full.push_str(&format!(" {}", bytes_text(done, line.total)));
            }
            let (output, mut result) = (self.output, Ok(()));
            self.bars.suspend(|| result = output.line(full.trim_end()));
            result?;
            shown.text = text;
        }
        shown.tenths = tenths;
        draw(&self.bars, shown, line);
        Ok(())
    }

    /// Leaves the terminal clean.
    pub(super) fn finish(&mut self) {
        for shown in self.hosts.values_mut() {
            if let Some(bar) = shown.bar.take() {
                bar.finish_and_clear();
            }
        }
    }
}

fn percent(line: &HostLine) -> Option<u64> {
    let (done, total) = (line.bytes?, line.total.filter(|t| *t > 0)?);
    Some(done.min(total).saturating_mul(100) / total)
}

/// What changes little: the line is printed when this changes.
fn detail(line: &HostLine) -> String {
    if line.deleted {
        return "deleted".to_owned();
    }
    let step = line.step.as_deref().unwrap_or_default();
    let measured = line.total.is_some_and(|total| total > 0);
    // A step that is measured has its numbers beside it, and an agent may begin its message with the step.
    let parts = match line.message.as_str() {
        message if step.is_empty() || message.starts_with(step) && !measured => [message, ""],
        _ if measured => [step, ""],
        message => [step, message],
    };
    let text = parts.iter().filter(|p| !p.is_empty()).map(|p| printable(p)).collect::<Vec<_>>().join(": ");
    if text.is_empty() { String::new() } else { format!(" {text}") }
}

fn draw(bars: &MultiProgress, shown: &mut Shown, line: &HostLine) {
    let (Some(done), Some(total)) = (line.bytes, line.total.filter(|t| *t > 0)) else {
        if let Some(bar) = shown.bar.take() {
            bar.finish_and_clear();
        }
        return;
    };
    let bar = shown.bar.get_or_insert_with(|| {
        let style = ProgressStyle::with_template("{prefix:20} [{bar:24}] {percent:>3}% {msg}")
            .unwrap_or_else(|_| ProgressStyle::default_bar());
        bars.add(ProgressBar::new(total)).with_style(style).with_prefix(line.name.clone())
    });
    bar.set_length(total);
    bar.set_message(rate_text(done, total, line.bytes_per_second));
    bar.set_position(done.min(total));
}

/// `1.20 GiB of 4.00 GiB`.
pub(super) fn bytes_text(done: u64, total: Option<u64>) -> String {
    match total {
        Some(total) => format!("{} of {}", HumanBytes(done), HumanBytes(total)),
        None => HumanBytes(done).to_string(),
    }
}

fn rate_text(done: u64, total: u64, rate: Option<u64>) -> String {
    match rate.filter(|r| *r > 0) {
        Some(rate) => {
            let left = Duration::from_secs(total.saturating_sub(done) / rate);
            format!("{}/s, {} left", HumanBytes(rate), HumanDuration(left))
        }
        None => bytes_text(done, Some(total)),
    }
}

#[cfg(test)]
mod tests {
    use farrier_shared::contract::HostKey;

    use super::*;

    #[test]
    fn a_step_is_told_once_and_numbers_only_beside_it() {
        let key = HostKey::new("default".parse().unwrap(), "h".parse().unwrap());
        let line = |step: Option<&str>, message: &str, total| HostLine {
            step: step.map(str::to_owned),
            message: message.to_owned(),
            total,
            deleted: false,
            ..HostLine::gone(&key)
        };
        let table = [
            (line(None, "sending the report", None), " sending the report"),
            (line(Some("wait"), "wait", None), " wait"),
            (line(Some("seed"), "planting", None), " seed: planting"),
            (line(Some("write"), "write: 3 of 95 MiB", Some(95 << 20)), " write"),
            (line(None, "", None), ""),
        ];
        for (line, expected) in table {
            assert_eq!(detail(&line), expected, "{line:?}");
        }
    }
}
