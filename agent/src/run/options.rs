//! What the `farrier.*` parameters of the command line make of a run.

use std::collections::HashMap;

use farrier_shared::contract::cmdline::BootParams;
use farrier_shared::contract::options::{AgentOptions, Mirrors, OptionError};

use crate::deploy::{Order, Source};

/// Reads the parameters; keys without the prefix.
///
/// # Errors
/// The first parameter that cannot be honoured.
pub(super) fn read(extra: &HashMap<String, String>) -> Result<AgentOptions, OptionError> {
    let parameters = extra.iter().map(|(key, value)| (key.as_str(), value.as_str()));
    AgentOptions::parse(parameters)
}

/// What is to be installed.
pub(super) fn order(options: &AgentOptions, params: &BootParams) -> Order {
    Order {
        source: Source {
            image: params.target.clone(),
            mirrors: options.mirrors.iter().flat_map(Mirrors::iter).cloned().collect(),
            min_rate: options.min_rate.unwrap_or_default(),
        },
        digest: params.target_digest,
        content_digest: options.content_digest,
        verify: options.verify.unwrap_or_default(),
        grow: options.grow.unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use farrier_shared::contract::options::Verify;

    use super::*;

    fn given(pairs: &[(&str, &str)]) -> Result<AgentOptions, OptionError> {
        read(&pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect())
    }

    #[test]
    fn nothing_asked_is_the_default_and_unknown_keys_are_ignored() {
        assert_eq!(given(&[]), Ok(AgentOptions::default()));
        assert_eq!(given(&[("run", "x"), ("colour", "blue"), ("seed", "")]), Ok(AgentOptions::default()));
    }

    #[test]
    fn what_is_asked_is_ordered() {
        let digest = format!("sha256:{}", "a".repeat(64));
        let options =
            given(&[("verify", "readback"), ("content-digest", &digest), ("seed", "cos-oem")]).unwrap();
        assert_eq!((options.verify, options.content_digest), (Some(Verify::ReadBack), digest.parse().ok()));
    }

    #[test]
    fn what_cannot_be_honoured_fails_the_run() {
        for (key, value) in [
            ("verify", "maybe"),
            ("content-digest", "md5:0"),
            ("seed", "talos"),
            ("grow", "root"),
            ("disk-hints", "serial>1"),
            ("on-failure", "dance"),
        ] {
            let told = given(&[(key, value)]).unwrap_err().to_string();
            assert!(told.starts_with(&format!("farrier.{key}")), "{told}");
        }
    }
}
