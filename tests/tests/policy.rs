//! The policy of `deny.toml`, held where nothing can be fetched: licences, banned crates, sources.
//!
//! `cargo deny` holds more (advisories, licence texts) and runs where it is installed. What this test reads of
//! the policy is the same file, so that there is one place to change it.

#![expect(clippy::unwrap_used, reason = "a test: what cannot be read fails it")]

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use serde::Deserialize;
use serde_json::Value;
use spdx::{Expression, ParseMode};

#[derive(Deserialize)]
struct Policy {
    licenses: Licenses,
    bans: Bans,
}

#[derive(Deserialize)]
struct Licenses {
    allow: Vec<String>,
}

#[derive(Deserialize)]
struct Bans {
    deny: Vec<Banned>,
}

#[derive(Deserialize)]
struct Banned {
    #[serde(rename = "crate")]
    name: String,
    reason: String,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

fn policy() -> Policy {
    toml::from_str(&std::fs::read_to_string(root().join("deny.toml")).unwrap()).unwrap()
}

/// Every package that some target of ours is built from.
fn packages() -> Vec<Value> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked", "--offline", "--filter-platform"])
        .arg("x86_64-unknown-linux-gnu")
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let used: BTreeSet<&str> =
        metadata["resolve"]["nodes"].as_array().unwrap().iter().map(|n| n["id"].as_str().unwrap()).collect();
    let all = metadata["packages"].as_array().unwrap();
    all.iter().filter(|p| used.contains(p["id"].as_str().unwrap())).cloned().collect()
}

fn allows(allowed: &[String], licence: &str) -> bool {
    let Ok(expression) = Expression::parse_mode(licence, ParseMode::LAX) else { return false };
    expression.evaluate(|requirement| allowed.contains(&requirement.to_string()))
}

#[test]
fn every_dependency_has_a_licence_that_the_policy_allows() {
    let allowed = policy().licenses.allow;
    let refused: Vec<String> = packages()
        .iter()
        .filter(|p| !p["license"].as_str().is_some_and(|licence| allows(&allowed, licence)))
        .map(|p| format!("{} {}: {}", p["name"], p["version"], p["license"]))
        .collect();
    assert!(refused.is_empty(), "not allowed by deny.toml: {refused:#?}");
}

#[test]
fn no_banned_crate_is_built() {
    let banned = policy().bans.deny;
    for package in packages() {
        let name = package["name"].as_str().unwrap();
        if let Some(ban) = banned.iter().find(|b| b.name == name) {
            panic!("{name} is banned: {}", ban.reason);
        }
    }
}

#[test]
fn every_dependency_comes_from_the_registry_or_this_workspace() {
    for package in packages() {
        match package["source"].as_str() {
            Some(source) => {
                assert!(source.starts_with("registry+"), "{} comes from {source}", package["name"]);
            }
            None => {
                let manifest = Path::new(package["manifest_path"].as_str().unwrap());
                assert!(manifest.starts_with(root()), "{} lies outside the workspace", package["name"]);
            }
        }
    }
}

#[test]
fn the_policy_can_refuse() {
    let allowed = ["MIT".to_owned(), "Apache-2.0 WITH LLVM-exception".to_owned()];
    for (licence, verdict) in [
        ("MIT", true),
        ("MIT OR GPL-3.0-only", true),
        ("MIT/Apache-2.0", true),
        ("Apache-2.0 WITH LLVM-exception", true),
        ("Apache-2.0", false),
        ("MIT AND GPL-3.0-only", false),
        ("GPL-3.0-only", false),
        ("whatever you like", false),
    ] {
        assert_eq!(allows(&allowed, licence), verdict, "{licence}");
    }
}
