//! Secrets made for one run, and the search for them where they must not be, as they are or in another dress.

mod forms;

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};

use forms::{Forms, Log};

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
    forms: Forms,
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Secret({})", self.name)
    }
}

/// Fewer bytes than this may be somewhere by chance.
const SHORTEST: usize = 8;
/// What stands in a P-256 key before the number that is the secret of it; its public half follows.
const BEFORE_SCALAR: [u8; 5] = [2, 1, 1, 4, 32];

impl Secret {
    /// A text; where it spells bytes in base64, as tokens do, those as well.
    ///
    /// # Errors
    /// When it is too short to be searched for.
    pub fn text(name: &'static str, text: &str) -> Result<Self> {
        ensure!(text.len() >= SHORTEST, "the {name} is too short to search for: {} bytes", text.len());
        let mut forms = Forms::default();
        forms.add_text(text);
        if let Ok(bytes) = URL_SAFE_NO_PAD.decode(text)
            && bytes.len() >= SHORTEST
        {
            forms.add_bytes(&bytes);
        }
        Ok(Self { name, forms })
    }

    /// A private key on P-256, of which only the secret number counts: its public half is in the certificate.
    ///
    /// # Errors
    /// When it is another kind of key.
    pub fn key(name: &'static str, pem: &str) -> Result<Self> {
        let lines = || pem.lines().map(str::trim).filter(|line| !line.starts_with("-----"));
        let der = STANDARD.decode(lines().collect::<String>());
        let der = der.with_context(|| format!("the {name} is not PEM"))?;
        let start = der
            .windows(BEFORE_SCALAR.len())
            .position(|window| window == BEFORE_SCALAR)
            .with_context(|| format!("the {name} is not on P-256: which of its bytes are secret?"))?
            + BEFORE_SCALAR.len();
        let scalar = der.get(start..start + 32).with_context(|| format!("the {name} is cut short"))?;
        let mut forms = Forms::default();
        forms.add_bytes(scalar);
        // The whole file may be encoded once more, as the CA is on a command line.
        let (mut from, mut rest) = ((start * 8).div_ceil(6), scalar.len() * 8 / 6);
        for line in lines() {
            let piece = line.get(from..line.len().min(from + rest)).unwrap_or_default();
            if piece.len() >= SHORTEST {
                forms.add_text(piece);
            }
            (from, rest) = (from.saturating_sub(line.len()), rest - piece.len());
        }
        Ok(Self { name, forms })
    }
}

/// Every log below `dir` that holds one of `secrets` in any form, as `file: secret`.
///
/// # Errors
/// When a file cannot be read, or there is nothing to search or to search for: that would prove nothing.
pub fn leaks(dir: &Path, secrets: &[Secret]) -> Result<Vec<String>> {
    let logs = logs(dir)?;
    ensure!(!logs.is_empty(), "no logs below {}", dir.display());
    ensure!(!secrets.is_empty(), "no secrets to search for");
    let mut found = Vec::new();
    for path in logs {
        let bytes = fs::read(&path).with_context(|| format!("read {}", path.display()))?;
        let log = Log::new(&bytes);
        let leaked = secrets.iter().filter(|secret| secret.forms.are_in(&log));
        found.extend(leaked.map(|secret| format!("{}: {}", path.display(), secret.name)));
    }
    Ok(found)
}

/// Every log below `dir`: `*.log`, the older ones that are numbered, and lines of JSON.
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
            } else if is_log(&path) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

fn is_log(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let unnumbered = name.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end_matches('.');
    unnumbered.ends_with(".log") || name.ends_with(".jsonl")
}

#[cfg(test)]
mod tests {
    use rcgen::KeyPair;
    use sha2::{Digest as _, Sha256};

    use super::*;
    use crate::certificate::Authority;

    const TOKEN: &str = "q2-_7rXkLw0Zs9TtUuVvWwXxYyZz01234567-_abcdc";

    fn found_in(log: &str, secret: &Secret) -> bool {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("some.log"), log).unwrap();
        !leaks(dir.path(), std::slice::from_ref(secret)).unwrap().is_empty()
    }

    #[test]
    fn a_leak_is_found_and_told_without_the_secret() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("deep")).unwrap();
        for name in ["deep/serial.log", "older.log.2", "watch.jsonl", "data.db"] {
            fs::write(dir.path().join(name), "noise s3cret-value noise").unwrap();
        }
        fs::write(dir.path().join("clean.log"), "nothing").unwrap();
        let secrets = [Secret::text("token", "s3cret-value").unwrap()];
        let found = leaks(dir.path(), &secrets).unwrap();
        let ends = ["deep/serial.log: token", "older.log.2: token", "watch.jsonl: token"];
        assert!(
            found.iter().map(String::as_str).zip(ends).all(|(found, end)| found.ends_with(end)),
            "{found:?}"
        );
        assert!(
            found.len() == ends.len() && !format!("{found:?}{secrets:?}").contains("s3cret"),
            "{found:?}"
        );
    }

    #[test]
    fn a_search_of_nothing_or_for_nothing_is_a_failure() {
        let dir = tempfile::tempdir().unwrap();
        let secret = Secret::text("token", TOKEN).unwrap();
        assert!(leaks(dir.path(), std::slice::from_ref(&secret)).is_err());
        fs::write(dir.path().join("some.log"), "").unwrap();
        assert!(leaks(dir.path(), &[]).is_err());
        assert!(leaks(dir.path(), &[secret]).unwrap().is_empty());
        assert!(Secret::text("token", "short").is_err());
    }

    #[test]
    fn a_password_is_found_in_a_login_header() {
        let secret = Secret::text("password", "bmc-password-0123456789abcdef").unwrap();
        for user in ["a", "ab", "abc", "operator"] {
            let login = STANDARD.encode(format!("{user}:bmc-password-0123456789abcdef"));
            assert!(found_in(&format!("authorization: Basic {login}"), &secret), "{user}");
        }
        let other = STANDARD.encode("operator:bmc-password-fedcba9876543210");
        assert!(!found_in(&format!("authorization: Basic {other}"), &secret));
    }

    #[test]
    fn a_token_is_found_by_the_bytes_it_spells_but_not_by_its_hash() {
        let secret = Secret::text("token", TOKEN).unwrap();
        let bytes = URL_SAFE_NO_PAD.decode(TOKEN).unwrap();
        for log in [
            format!("Bearer {TOKEN}"),
            hex::encode(&bytes),
            hex::encode_upper(TOKEN),
            STANDARD.encode(&bytes),
            STANDARD.encode(format!("x{TOKEN}")),
        ] {
            assert!(found_in(&log, &secret), "{log}");
        }
        let percent: String = TOKEN.bytes().map(|byte| format!("%{byte:02x}")).collect();
        assert!(found_in(&format!("GET /boot/{percent}?%"), &secret));
        assert!(!found_in(&hex::encode(Sha256::digest(TOKEN)), &secret));
    }

    #[test]
    fn a_private_key_is_found_line_by_line_and_its_certificate_is_not_it() {
        for _ in 0..20 {
            let authority = Authority::new("CA").unwrap();
            let leaf = authority.issue("127.0.0.1").unwrap();
            let secret = Secret::key("serving key", &leaf.key_pem).unwrap();
            assert!(found_in(&leaf.key_pem, &secret));
            assert!(found_in(&leaf.key_pem.replace('\n', "\\n"), &secret));
            assert!(found_in(&STANDARD.encode(&leaf.key_pem), &secret), "as a value on a command line");
            assert!(!found_in(&leaf.certificate_pem, &secret));
            assert!(!found_in(&STANDARD.encode(&leaf.certificate_pem), &secret));
            assert!(!found_in(&KeyPair::generate().unwrap().serialize_pem(), &secret));
        }
        assert!(Secret::key("serving key", Authority::new("CA").unwrap().pem()).is_err());
    }
}
