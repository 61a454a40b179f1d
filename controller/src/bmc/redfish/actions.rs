//! Which reset types to send for a power action, from what the BMC allows.

use farrier_shared::lifecycle::PowerState;

use super::quirks::Quirks;
use crate::bmc::ResetKind;

/// One request of a power action: the reset types that may do it, best first, and the power it must end in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) types: Vec<&'static str>,
    pub(super) ends: PowerState,
    /// The operating system takes part, so it may take long.
    pub(super) polite: bool,
}

/// Why there is no way to do it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NotOffered {
    pub(super) wanted: Vec<&'static str>,
}

/// The steps of a power action; none when the server is there already. `allowed` is what the BMC says it takes,
/// `None` when it does not say.
pub(super) fn plan(
    kind: ResetKind,
    power: PowerState,
    allowed: Option<&[String]>,
    quirks: &Quirks,
) -> Result<Vec<Step>, NotOffered> {
    const ON: &[&str] = &["On", "ForceOn"];
    const OFF: &[&str] = &["ForceOff"];
    let offered = |types: &[&'static str]| -> Vec<&'static str> {
        let takes = |wanted: &str| allowed.is_none_or(|list| list.iter().any(|a| a == wanted));
        types.iter().copied().filter(|t| takes(t)).collect()
    };
    let step = |wanted: &[&'static str], ends| {
        let types = offered(wanted);
        let polite = matches!(types.first(), Some(&("GracefulShutdown" | "PushPowerButton")));
        if types.is_empty() {
            Err(NotOffered { wanted: wanted.to_vec() })
        } else {
            Ok(Step { types, ends, polite })
        }
    };
    match (kind, power) {
        (ResetKind::On, PowerState::On)
        | (ResetKind::GracefulShutdown | ResetKind::ForceOff, PowerState::Off) => Ok(Vec::new()),
        (ResetKind::On | ResetKind::ForceRestart, PowerState::Off) => Ok(vec![step(ON, PowerState::On)?]),
        (ResetKind::GracefulShutdown, PowerState::On) => Ok(vec![step(quirks.shutdown, PowerState::Off)?]),
        (ResetKind::ForceOff, PowerState::On) => Ok(vec![step(OFF, PowerState::Off)?]),
        (ResetKind::ForceRestart, PowerState::On) => match step(quirks.restart, PowerState::On) {
            Ok(step) => Ok(vec![step]),
            Err(_) => Ok(vec![step(OFF, PowerState::Off)?, step(ON, PowerState::On)?]),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bmc::redfish::quirks;

    #[test]
    fn actions_use_the_best_type_the_bmc_allows() {
        use PowerState::{Off, On};
        for (kind, power, allowed, expected) in [
            (ResetKind::On, On, "On", ""),
            (ResetKind::On, Off, "On ForceOn", "On|ForceOn"),
            (ResetKind::On, Off, "ForceOn", "ForceOn"),
            (ResetKind::ForceOff, Off, "ForceOff", ""),
            (ResetKind::ForceOff, On, "ForceOff", "ForceOff"),
            (ResetKind::GracefulShutdown, On, "GracefulShutdown ForceOff", "GracefulShutdown|ForceOff"),
            (ResetKind::GracefulShutdown, On, "ForceOff", "ForceOff"),
            (ResetKind::GracefulShutdown, Off, "", ""),
            (ResetKind::ForceRestart, On, "ForceRestart PowerCycle", "ForceRestart|PowerCycle"),
            (ResetKind::ForceRestart, On, "PowerCycle On ForceOff", "PowerCycle"),
            (ResetKind::ForceRestart, On, "On ForceOff", "ForceOff then On"),
            (ResetKind::ForceRestart, Off, "On ForceRestart", "On"),
            (ResetKind::ForceRestart, On, "On", "not offered"),
            (ResetKind::ForceOff, On, "", "not offered"),
        ] {
            let allowed: Vec<String> = allowed.split_whitespace().map(str::to_owned).collect();
            let planned = match plan(kind, power, Some(&allowed), &quirks::of("")) {
                Ok(steps) => steps.iter().map(|s| s.types.join("|")).collect::<Vec<_>>().join(" then "),
                Err(_) => "not offered".to_owned(),
            };
            assert_eq!(planned, expected, "{kind:?} at {power:?} with {allowed:?}");
        }
    }

    #[test]
    fn the_power_button_is_a_shutdown_where_it_is_known_to_be_one() {
        let allowed = ["On", "ForceOff", "PushPowerButton"].map(str::to_owned);
        for (maker, types, polite) in
            [("HPE", vec!["PushPowerButton", "ForceOff"], true), ("Dell Inc.", vec!["ForceOff"], false)]
        {
            let quirks = quirks::of(maker);
            let steps = plan(ResetKind::GracefulShutdown, PowerState::On, Some(&allowed), &quirks).unwrap();
            assert_eq!(steps, [Step { types, ends: PowerState::Off, polite }], "{maker}");
        }
    }

    #[test]
    fn a_bmc_that_does_not_say_is_asked_for_the_best() {
        let steps = plan(ResetKind::ForceRestart, PowerState::On, None, &quirks::of("")).unwrap();
        assert_eq!(steps[0].types, ["ForceRestart", "PowerCycle"]);
    }
}
