//! `--option KEY=VALUE`: an option for the agent, checked before anything is sent.

use std::collections::BTreeMap;
use std::str::FromStr;

use farrier_shared::contract::options::{self, AgentOption, PREFIX, PlacementError, Scope};
use farrier_shared::resource::AgentOptionTexts;

use super::failure::Failure;

/// One option of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MachineOption {
    option: AgentOption,
    value: String,
}

/// Why a text is not a [`MachineOption`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum MachineOptionError {
    /// No equals sign.
    #[error("expected KEY=VALUE, such as verify=readback")]
    Form,
    /// Not an option of a machine.
    #[error("{key}: {problem}")]
    Refused {
        /// The key, cut to a printable length.
        key: String,
        /// Why.
        problem: PlacementError,
    },
}

impl FromStr for MachineOption {
    type Err = MachineOptionError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (key, value) = text.split_once('=').ok_or(MachineOptionError::Form)?;
        // As it stands on the kernel command line, from where people copy.
        let key = key.strip_prefix(PREFIX).unwrap_or(key);
        let refused =
            |problem| MachineOptionError::Refused { key: key.escape_debug().take(80).collect(), problem };
        let option = options::check(Scope::Machine, key, value).map_err(refused)?;
        Ok(Self { option, value: value.to_owned() })
    }
}

/// The options as a machine's spec has them.
///
/// # Errors
/// When a key is given twice.
pub(super) fn texts(given: &[MachineOption]) -> Result<AgentOptionTexts, Failure> {
    let mut texts = BTreeMap::new();
    for MachineOption { option, value } in given {
        if texts.insert(option.key().to_owned(), value.clone()).is_some() {
            let problem = format!("{} is given twice", option.key());
            return Err(Failure::invalid("--option", problem, "give each key once"));
        }
    }
    Ok(texts.into_iter().collect())
}

/// What the help says of the keys.
pub(super) fn help() -> String {
    let machines = AgentOption::ALL.iter().filter(|option| option.scope().covers(Scope::Machine));
    let width = machines.clone().map(|option| option.key().len()).max().unwrap_or_default();
    let rows: String =
        machines.map(|option| format!("\n  {:width$}  {}", option.key(), option.accepted())).collect();
    format!("Keys and values of --option:{rows}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_is_checked_by_the_one_table() {
        let option = |text: &str| text.parse::<MachineOption>();
        assert_eq!(option("verify=off"), option("farrier.verify=off"));
        assert_eq!(option("disk-hints=size>=1T,model=X").unwrap().value, "size>=1T,model=X");
        for (text, told) in [
            ("verify", "KEY=VALUE"),
            ("verify=", "verify: no value"),
            ("verify=maybe", "auto, readback or off"),
            ("vlan=5", "vlan: does not belong here; set it in spec.agentOptions of the PhysicalHost"),
            ("verfiy=off", "expected one of verify, "),
            ("=off", "no such option"),
        ] {
            let error = option(text).unwrap_err().to_string();
            assert!(error.contains(told), "{error}");
        }
    }

    #[test]
    fn a_key_stands_once() {
        let given = |texts: &[&str]| texts.iter().map(|t| t.parse().unwrap()).collect::<Vec<_>>();
        assert!(texts(&given(&["verify=off", "verify=off"])).is_err());
        let both = texts(&given(&["verify=off", "on-failure=reboot"])).unwrap();
        assert_eq!(both.pairs().collect::<Vec<_>>(), [("on-failure", "reboot"), ("verify", "off")]);
    }

    #[test]
    fn the_help_names_what_a_machine_may_carry_and_nothing_else() {
        let help = help();
        assert!(help.contains("verify") && help.contains("on-failure") && !help.contains("vlan"), "{help}");
    }
}
