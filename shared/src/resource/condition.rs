//! Conditions: what is true of an object, since when, and why.

use serde::{Deserialize, Serialize};

use crate::contract::time::Time;

/// Truth of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Truth {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// Not known.
    Unknown,
}

/// One condition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// What is claimed, such as `HostAvailable`; unique in its list.
    #[serde(rename = "type")]
    pub kind: String,
    /// Whether it holds.
    pub status: Truth,
    /// Why, in one CamelCase word.
    #[serde(default)]
    pub reason: String,
    /// Why, for people.
    #[serde(default)]
    pub message: String,
    /// Since when `status` is what it is.
    pub last_transition_time: Time,
}

/// Sets a condition; its transition time moves only when the status changes.
pub fn set(
    conditions: &mut Vec<Condition>,
    kind: &str,
    status: Truth,
    reason: &str,
    message: &str,
    now: Time,
) {
    let new = |since| Condition {
        kind: kind.to_owned(),
        status,
        reason: reason.to_owned(),
        message: message.to_owned(),
        last_transition_time: since,
    };
    match conditions.iter_mut().find(|c| c.kind == kind) {
        Some(old) => {
            let since = if old.status == status { old.last_transition_time } else { now };
            *old = new(since);
        }
        None => conditions.push(new(now)),
    }
}

/// The condition of this kind.
pub fn get<'a>(conditions: &'a [Condition], kind: &str) -> Option<&'a Condition> {
    conditions.iter().find(|c| c.kind == kind)
}
