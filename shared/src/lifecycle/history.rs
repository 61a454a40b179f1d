//! One line of a host's history.

use serde::{Deserialize, Serialize};

use crate::contract::time::Time;

/// Something that happened to a host, as it is kept and shown. Never holds a secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HistoryEntry {
    /// When.
    pub at: Time,
    /// Who: `host` or `machine` (their reconcilers), `agent`, `operator`.
    pub actor: String,
    /// What, in one CamelCase word.
    pub event: String,
    /// State before, empty for one not looked at yet.
    #[serde(default)]
    pub from: String,
    /// State after.
    #[serde(default)]
    pub to: String,
    /// Why, for people.
    #[serde(default)]
    pub reason: String,
    /// The run it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
}
