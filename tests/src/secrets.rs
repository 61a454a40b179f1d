//! Secrets made for one run, and the search for them where they must not be.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

/// A value nobody else has; `label` says in a log that leaks it what it was.
///
/// # Errors
/// When the kernel has no random numbers.
pub fn random(label: &str) -> Result<String> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut bytes))
        .context("read random numbers")?;
    Ok(format!("{label}-{}", hex::encode(bytes)))
}

/// A secret, named so that a finding can be told without telling the secret.
#[derive(Clone)]
pub struct Secret {
    /// What it is.
    pub name: &'static str,
    /// Its text.
    pub text: String,
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Secret({})", self.name)
    }
}

/// Every `*.log` file below `dir` that holds one of `secrets`, as `file: secret`.
///
/// # Errors
/// When a file cannot be read, or there is no log at all: a search of nothing proves nothing.
pub fn leaks(dir: &Path, secrets: &[Secret]) -> Result<Vec<String>> {
    let logs = logs(dir)?;
    anyhow::ensure!(!logs.is_empty(), "no logs below {}", dir.display());
    anyhow::ensure!(
        secrets.iter().all(|secret| secret.text.len() >= 8),
        "a secret is too short to search for"
    );
    let mut found = Vec::new();
    for log in logs {
        let bytes = fs::read(&log).with_context(|| format!("read {}", log.display()))?;
        for secret in secrets {
            if bytes.windows(secret.text.len()).any(|window| window == secret.text.as_bytes()) {
                found.push(format!("{}: {}", log.display(), secret.name));
            }
        }
    }
    Ok(found)
}

/// Every `*.log` file below `dir`.
///
/// # Errors
/// When a directory cannot be read.
pub fn logs(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut todo = vec![dir.to_owned()];
    while let Some(dir) = todo.pop() {
        for entry in fs::read_dir(&dir).with_context(|| format!("read {}", dir.display()))? {
            let path = entry?.path();
            if path.is_dir() {
                todo.push(path);
            } else if path.extension().is_some_and(|extension| extension == "log") {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leak_is_found_and_told_without_the_secret() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("deep")).unwrap();
        fs::write(dir.path().join("deep/serial.log"), "noise s3cret-value noise").unwrap();
        fs::write(dir.path().join("clean.log"), "nothing").unwrap();
        let secrets = [Secret { name: "token", text: "s3cret-value".to_owned() }];
        let found = leaks(dir.path(), &secrets).unwrap();
        assert_eq!(found.len(), 1);
        assert!(found[0].ends_with("deep/serial.log: token") && !found[0].contains("s3cret"), "{found:?}");
    }

    #[test]
    fn a_search_of_nothing_is_a_failure() {
        let dir = tempfile::tempdir().unwrap();
        assert!(leaks(dir.path(), &[]).is_err());
    }
}
