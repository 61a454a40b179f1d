//! The `farrier.*` parameters that shape a run: one table, by which `apply` refuses, the boot script is rendered
//! and the agent obeys.
//!
//! To add one: a file here with the type of its value ([`FromStr`](std::str::FromStr) and
//! [`Display`](std::fmt::Display), the two inverse to each other), a row in `table.rs`, and a row in
//! `docs/options.md`. Where the agent acts on it, it reads the field of [`AgentOptions`].

pub mod bond;
pub mod disk_hints;
mod efi_boot;
mod grow;
pub mod ip6;
mod min_rate;
mod mirrors;
mod mtu;
pub mod ntp;
mod on_failure;
mod seed;
mod table;
mod verify;
mod vlan;
mod word;

pub use bond::{Bond, BondMode};
pub use disk_hints::DiskHints;
pub use efi_boot::EfiBoot;
pub use grow::Grow;
pub use ip6::{Ip6, StaticIp6};
pub use min_rate::MinRate;
pub use mirrors::Mirrors;
pub use mtu::Mtu;
pub use ntp::{NtpServer, NtpServers};
pub use on_failure::OnFailure;
pub use seed::SeedKind;
pub use table::{AgentOption, AgentOptions};
pub use verify::Verify;
pub use vlan::VlanId;
pub use word::{MAX_VALUE, is_word};

/// What every key begins with on the kernel command line.
pub const PREFIX: &str = "farrier.";

/// What kind of object may carry an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// PhysicalHost: what follows from cables and switches, whatever is installed.
    Host,
    /// Beskar7Machine: what follows from the operating system that is wanted.
    Machine,
    /// Either; the machine's counts where both say something.
    Both,
}

impl Scope {
    /// Whether an object of the kind `holder` may carry it.
    pub fn covers(self, holder: Self) -> bool {
        self == Self::Both || self == holder
    }

    /// Where it belongs, in the words of an error.
    fn place(self) -> &'static str {
        match self {
            Self::Host => "spec.agentOptions of the PhysicalHost",
            Self::Machine => "spec.agentOptions of the Beskar7Machine",
            Self::Both => "spec.agentOptions of the PhysicalHost or the Beskar7Machine",
        }
    }
}

/// A value that cannot be honoured. To go on without would do something else than was asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{option}: {reason}")]
pub struct OptionError {
    /// Whose value.
    pub option: AgentOption,
    /// What is wrong with it and what is expected, in the words of its type.
    pub reason: String,
}

/// An option that an object must not carry.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlacementError {
    /// No such key.
    #[error("no such option; expected one of {known}")]
    Unknown {
        /// The keys an object of this kind may carry.
        known: String,
    },
    /// It is the other kind's.
    #[error("does not belong here; set it in {}", .option.scope().place())]
    Misplaced {
        /// Which.
        option: AgentOption,
    },
    /// Its value is not one.
    #[error("{}", .0.reason)]
    Value(OptionError),
}

/// Checks one option of an object of the kind `holder`.
///
/// # Errors
/// When the key is unknown or another kind's, or the value would not be honoured. An empty value is none.
pub fn check(holder: Scope, key: &str, value: &str) -> Result<AgentOption, PlacementError> {
    let Some(option) = AgentOption::from_key(key) else {
        let known = AgentOption::ALL.iter().filter(|o| o.scope().covers(holder)).map(|o| o.key());
        return Err(PlacementError::Unknown { known: known.collect::<Vec<_>>().join(", ") });
    };
    if !option.scope().covers(holder) {
        return Err(PlacementError::Misplaced { option });
    }
    if value.is_empty() {
        let reason = format!("no value; expected {}", option.accepted());
        return Err(PlacementError::Value(OptionError { option, reason }));
    }
    AgentOptions::parse([(key, value)]).map_err(PlacementError::Value)?;
    Ok(option)
}

/// The `farrier.*` words of a kernel command line in their order, keys without the prefix.
pub fn words(cmdline: &str) -> impl DoubleEndedIterator<Item = (&str, &str)> {
    cmdline.split_ascii_whitespace().filter_map(|word| {
        let word = word.strip_prefix(PREFIX)?;
        Some(word.split_once('=').unwrap_or((word, "")))
    })
}

/// A text that is none of the values: the error of types that have nothing better to say.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("got {found:?}, expected {expected}")]
pub struct NotAccepted {
    /// What was given, cut to a printable length.
    pub found: String,
    /// What would have been accepted.
    pub expected: &'static str,
}

impl NotAccepted {
    /// The error about `text`.
    pub fn new(text: &str, expected: &'static str) -> Self {
        Self { found: text.chars().take(80).collect(), expected }
    }
}
