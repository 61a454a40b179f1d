//! The DHCP examples that operators copy: dnsmasq takes each as it is, with every line that is offered in a comment,
//! and both of them joined.

#![expect(clippy::unwrap_used, reason = "a test: what cannot be read fails it")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What dnsmasq says against this configuration, without acting on it.
fn complaint(configuration: &str) -> Option<String> {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("dnsmasq.conf");
    fs::write(&file, configuration).unwrap();
    let output = Command::new("dnsmasq").arg("--test").arg("-C").arg(&file).output();
    let output = output.expect("dnsmasq can be started; `make deps` installs it");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (!output.status.success()).then_some(said)
}

/// Every example, by its path.
fn examples() -> Vec<(PathBuf, String)> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("ipxe");
    let paths = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let all: Vec<_> = paths.filter(|path| path.extension().is_some_and(|end| end == "conf")).collect();
    assert_eq!(all.len(), 2, "{all:?}");
    all.into_iter().map(|path| (path.clone(), fs::read_to_string(path).unwrap())).collect()
}

#[test]
fn dnsmasq_takes_every_example_as_it_is() {
    for (path, text) in examples() {
        assert_eq!(complaint(&text), None, "{}", path.display());
    }
}

#[test]
fn dnsmasq_takes_every_line_that_is_offered_in_a_comment() {
    let mut offered = 0;
    for (path, text) in examples() {
        for line in text.lines().filter(|line| line.starts_with("#dhcp-")) {
            let taken_up = text.replacen(line, &line[1..], 1);
            assert_eq!(complaint(&taken_up), None, "{}: {line}", path.display());
            offered += 1;
        }
    }
    assert!(offered >= 4, "{offered} lines are offered");
}

#[test]
fn dnsmasq_takes_both_examples_in_one() {
    let examples = examples();
    // A line that is in both is wanted once.
    let mut lines: Vec<&str> = Vec::new();
    for line in examples.iter().flat_map(|(_, text)| text.lines()) {
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    assert_eq!(complaint(&lines.join("\n")), None);
}

#[test]
fn a_slip_in_an_example_would_be_seen() {
    for (path, text) in examples() {
        let slip = text.replace("option:client-arch", "option:client-architecture");
        let said = complaint(&slip).unwrap_or_default();
        assert!(text != slip && said.contains(" at line "), "{}: {said:?}", path.display());
    }
}
