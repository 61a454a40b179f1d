//! Bodies of the agent's callbacks and their limits (contract section 2).

use serde::{Deserialize, Serialize};

/// Largest inspection report accepted, in bytes; more is answered 413.
pub const MAX_INSPECTION_BODY: usize = 1 << 20;
/// Largest user-data served by `/bootstrap`, in bytes.
pub const MAX_BOOTSTRAP_BODY: usize = 1 << 20;
/// Largest body read of `/provisioned`, `/provision-failed` and `/events`, in bytes.
pub const MAX_SMALL_BODY: usize = 64 << 10;
/// Prefix of every failure reason the agent reports; marks a run's failure as the run's own.
pub const FAILURE_PREFIX: &str = "inspector reported deploy failure: ";
/// Largest failure reason kept, in bytes, without the prefix.
pub const MAX_REASON: usize = 256;

/// Body of `POST /api/v1/provisioned`: advisory, never required.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provisioned {
    /// Always `provisioned`.
    pub status: String,
}

impl Default for Provisioned {
    fn default() -> Self {
        Self { status: "provisioned".to_owned() }
    }
}

/// Body of `POST /api/v1/provision-failed`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProvisionFailed {
    /// Why, for the operator: step, device or URL host, expected and got. Never a secret.
    pub reason: String,
}

/// A reason from the wire, made safe to store and show: printable, trimmed, at most [`MAX_REASON`] bytes,
/// prefixed with [`FAILURE_PREFIX`], never empty.
pub fn sanitise_reason(reason: &str) -> String {
    let printable = printable(reason);
    let trimmed = printable.trim();
    let text = if trimmed.is_empty() { "no details provided" } else { trimmed };
    format!("{FAILURE_PREFIX}{}", cut_reason(text))
}

/// Foreign text made safe to store and show: without what acts on a terminal, prints as nothing or turns text around.
pub fn printable(text: &str) -> String {
    text.chars().filter(|c| !c.is_control() && *c != '\u{fffd}' && !is_invisible(*c)).collect()
}

/// At most [`MAX_REASON`] bytes from the start of a reason, whole characters.
pub fn cut_reason(reason: &str) -> &str {
    &reason[..reason.floor_char_boundary(MAX_REASON)]
}

/// Separators, format and private characters: they print as nothing, as anything, or turn text around on a
/// terminal.
fn is_invisible(c: char) -> bool {
    let code = u32::from(c);
    let nonchar = code & 0xfffe == 0xfffe || (0xfdd0..=0xfdef).contains(&code);
    let format = matches!(
        code,
        0xad | 0x600..=0x605 | 0x61c | 0x6dd | 0x70f | 0x8e2 | 0x180e | 0x200b..=0x200f | 0x2028..=0x202e
            | 0x2060..=0x206f | 0xfeff | 0xfff9..=0xfffb | 0x110bd | 0x110cd | 0x13430..=0x1343f
            | 0x1bca0..=0x1bca3 | 0x1d173..=0x1d17a | 0xe0000..=0xe0fff
    );
    let private = matches!(code, 0xe000..=0xf8ff | 0xf0000..=0x10_ffff);
    nonchar || format || private || (c.is_whitespace() && c != ' ')
}

/// Names of events, from the metal-stack vocabulary; an observation, never a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum EventName {
    /// Firmware is loading the inspection image.
    #[serde(rename = "PXE Booting")]
    PxeBooting,
    /// The agent is up and preparing drivers and network.
    Preparing,
    /// The agent is sending its report.
    Registering,
    /// The agent waits for its orders.
    Waiting,
    /// The image is being written.
    Installing,
    /// The machine leaves for the installed system.
    #[serde(rename = "Booting New Kernel")]
    BootingNewKernel,
    /// The installed system reported.
    #[serde(rename = "Phoned Home")]
    PhonedHome,
    /// A reboot somebody asked for.
    #[serde(rename = "Planned Reboot")]
    PlannedReboot,
    /// Still there.
    Alive,
    /// The agent stopped by a fault.
    Crashed,
    /// A name this version does not know.
    #[serde(other)]
    Unknown,
}

/// Body of `POST /api/v1/events/{ns}/{host}` (Farrier's own; 404 from other controllers is tolerated).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// What happened.
    pub event: EventName,
    /// For people; never a secret.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The run this belongs to: the value of `farrier.run`, when the controller gave one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Step under way, such as `write`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// Bytes of the step done so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Bytes the step will take in all, when known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// Current rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_per_second: Option<u64>,
}

/// Body of every 202.
pub const ACCEPTED_BODY: &str = r#"{"status":"accepted"}"#;
/// Body of every 401, byte for byte, whatever the cause.
pub const UNAUTHORIZED_BODY: &str = r#"{"error":"unauthorized"}"#;
