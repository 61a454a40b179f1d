//! The `farrier.*` parameters of the command line that shape a run.

use std::collections::HashMap;

use farrier_shared::contract::Digest;
use farrier_shared::contract::cmdline::BootParams;
use farrier_shared::contract::options::DiskHints;

use crate::deploy::{Order, Verify};

/// What `farrier.*` asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// `farrier.verify`: whether the medium is read back.
    pub verify: Verify,
    /// `farrier.content-digest`: digest of the decoded bytes.
    pub content_digest: Option<Digest>,
    /// `farrier.disk-hints`: what the target disk must be like.
    pub disk_hints: Option<DiskHints>,
}

/// A parameter this agent cannot honour. To go on without would do something else than was asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("farrier.{key} is not supported as given; this agent takes {accepted}")]
pub struct OptionsError {
    /// The key without its prefix.
    pub key: &'static str,
    /// What would have been accepted.
    pub accepted: &'static str,
}

impl Options {
    /// Reads the parameters; keys without the prefix. Unknown keys are ignored, as the contract has it for all
    /// unknown parameters; known ones must have a value this agent can honour.
    ///
    /// # Errors
    /// The first parameter that cannot be honoured.
    pub fn parse(extra: &HashMap<String, String>) -> Result<Self, OptionsError> {
        let get = |key: &str| extra.get(key).map(String::as_str).filter(|v| !v.is_empty());
        let only = |key: &'static str, values: &[&str], accepted: &'static str| match get(key) {
            Some(value) if !values.contains(&value) => Err(OptionsError { key, accepted }),
            _ => Ok(()),
        };
        only("on-failure", &["reboot", "poweroff"], "reboot or poweroff")?;
        only("seed", &["cos-oem"], "cos-oem")?;
        only("grow", &["off"], "off")?;
        let verify = match get("verify") {
            None | Some("auto") => Verify::Auto,
            Some("readback") => Verify::ReadBack,
            Some("off") => Verify::Off,
            Some(_) => return Err(OptionsError { key: "verify", accepted: "auto, readback or off" }),
        };
        let content_digest = get("content-digest").map(str::parse).transpose().map_err(|_| OptionsError {
            key: "content-digest",
            accepted: "sha256: and 64 lower-case hex digits",
        })?;
        let disk_hints = get("disk-hints").map(str::parse).transpose().map_err(|_| OptionsError {
            key: "disk-hints",
            accepted: "a list such as size>=400G,rotational=0,model~=980",
        })?;
        Ok(Self { verify, content_digest, disk_hints })
    }

    /// What is to be installed.
    pub fn order(&self, params: &BootParams) -> Order {
        Order {
            image: params.target.clone(),
            digest: params.target_digest,
            content_digest: self.content_digest,
            verify: self.verify,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(pairs: &[(&str, &str)]) -> Result<Options, OptionsError> {
        Options::parse(&pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect())
    }

    #[test]
    fn nothing_asked_is_the_default_and_unknown_keys_are_ignored() {
        assert_eq!(parse(&[]), Ok(Options::default()));
        assert_eq!(parse(&[("run", "x"), ("colour", "blue"), ("seed", "")]), Ok(Options::default()));
    }

    #[test]
    fn what_is_asked_is_taken() {
        let digest = format!("sha256:{}", "a".repeat(64));
        let options =
            parse(&[("verify", "readback"), ("content-digest", &digest), ("seed", "cos-oem")]).unwrap();
        assert_eq!((options.verify, options.content_digest), (Verify::ReadBack, digest.parse().ok()));
    }

    #[test]
    fn what_cannot_be_honoured_fails_the_run() {
        for (key, value) in [
            ("verify", "maybe"),
            ("content-digest", "md5:0"),
            ("seed", "ignition"),
            ("grow", "root"),
            ("disk-hints", "serial>1"),
            ("on-failure", "dance"),
        ] {
            assert_eq!(parse(&[(key, value)]).unwrap_err().key, key);
        }
    }
}
