//! What the `farrier.*` parameters of the command line make of a run.

use std::collections::HashMap;

use farrier_shared::contract::cmdline::BootParams;
use farrier_shared::contract::options::AgentOptions;

use crate::deploy::Order;

/// A parameter this agent cannot honour. To go on without would do something else than was asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OptionsError {
    /// A value that is none of its key's.
    #[error(transparent)]
    Value(#[from] farrier_shared::contract::options::OptionError),
    /// A key that the contract reserves and this agent does not act on.
    #[error("farrier.{key} is not supported as given; this agent takes {accepted}")]
    Unsupported {
        /// The key without its prefix.
        key: &'static str,
        /// What would have been accepted.
        accepted: &'static str,
    },
}

/// Reads the parameters; keys without the prefix.
///
/// # Errors
/// The first parameter that cannot be honoured.
pub(super) fn read(extra: &HashMap<String, String>) -> Result<AgentOptions, OptionsError> {
    let reserved = [("seed", Some("cos-oem"), "cos-oem")];
    for (key, only, accepted) in reserved {
        let given = extra.get(key).map(String::as_str).filter(|value| !value.is_empty());
        if given.is_some() && given != only {
            return Err(OptionsError::Unsupported { key, accepted });
        }
    }
    let parameters = extra.iter().map(|(key, value)| (key.as_str(), value.as_str()));
    Ok(AgentOptions::parse(parameters)?)
}

/// What is to be installed.
pub(super) fn order(options: &AgentOptions, params: &BootParams) -> Order {
    Order {
        image: params.target.clone(),
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

    fn given(pairs: &[(&str, &str)]) -> Result<AgentOptions, OptionsError> {
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
            ("seed", "ignition"),
            ("grow", "root"),
            ("disk-hints", "serial>1"),
            ("on-failure", "dance"),
        ] {
            let told = given(&[(key, value)]).unwrap_err().to_string();
            assert!(told.starts_with(&format!("farrier.{key}")), "{told}");
        }
    }
}
