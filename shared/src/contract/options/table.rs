//! The table itself, and what follows from it.

use super::{
    Bond, DiskHints, EfiBoot, Grow, Ip6, MinRate, Mirrors, Mtu, NtpServers, OnFailure, OptionError, PREFIX,
    Scope, SeedKind, Verify, VlanId, is_word,
};
use crate::contract::digest::Digest;

/// Makes key, scope, typed field, parser and renderer of each row, so that none of them can be forgotten.
macro_rules! table {
    ($($(#[$doc:meta])* $option:ident, $field:ident: $value:ty, $key:literal, $scope:ident, $accepted:literal;)*) => {
        /// A key of the table.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum AgentOption {
            $($(#[$doc])* $option,)*
        }

        impl AgentOption {
            /// Every key, in the order of the table.
            pub const ALL: &'static [Self] = &[$(Self::$option),*];

            /// The key without the prefix.
            pub fn key(self) -> &'static str {
                match self { $(Self::$option => $key),* }
            }

            /// Which objects may carry it.
            pub fn scope(self) -> Scope {
                match self { $(Self::$option => Scope::$scope),* }
            }

            /// Its values, in words.
            pub fn accepted(self) -> &'static str {
                match self { $(Self::$option => $accepted),* }
            }
        }

        /// What `farrier.*` asks for; `None` where it says nothing.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct AgentOptions {
            $($(#[$doc])* pub $field: Option<$value>,)*
        }

        impl AgentOptions {
            /// Reads parameters, keys without the prefix. Unknown keys are ignored, as the contract has it for all
            /// unknown parameters; of duplicates the last counts, and an empty value is none.
            ///
            /// # Errors
            /// The first value that cannot be honoured.
            pub fn parse<'a>(
                parameters: impl IntoIterator<Item = (&'a str, &'a str)>,
            ) -> Result<Self, OptionError> {
                let mut options = Self::default();
                for (key, text) in parameters {
                    match AgentOption::from_key(key) {
                        $(Some(option @ AgentOption::$option) => options.$field = value(option, text)?,)*
                        None => {}
                    }
                }
                Ok(options)
            }

            /// The parameters that ask for this, in the order of the table.
            pub fn parameters(&self) -> Vec<(AgentOption, String)> {
                let mut parameters = Vec::new();
                $(if let Some(value) = &self.$field {
                    parameters.push((AgentOption::$option, value.to_string()));
                })*
                parameters
            }
        }
    };
}

table! {
    /// Whether the medium is read back.
    Verify, verify: Verify, "verify", Machine, "auto, readback or off";
    /// Digest of the decoded bytes of the image.
    ContentDigest, content_digest: Digest, "content-digest", Machine, "sha256: and 64 lower-case hex digits";
    /// Further places of the image.
    Mirrors, mirrors: Mirrors, "mirrors", Machine, "one to eight URLs, separated by commas";
    /// How slow an image server may be.
    MinRate, min_rate: MinRate, "min-rate", Both, "bytes per second such as 5M, or 0";
    /// What becomes of the machine when the run fails.
    OnFailure, on_failure: OnFailure, "on-failure", Both, "poweroff or reboot";
    /// What the target disk must be like.
    DiskHints, disk_hints: DiskHints, "disk-hints", Machine,
        "a list such as size>=400G,rotational=0,model~=980";
    /// What becomes of the room behind the image.
    Grow, grow: Grow, "grow", Machine, "off or last";
    /// Where the installed system goes in the firmware's boot order.
    EfiBoot, efi_boot: EfiBoot, "efi-boot", Machine, "network-first, disk-first or off";
    /// Who in the installed system reads the user-data.
    Seed, seed: SeedKind, "seed", Machine, "cos-oem, nocloud, configdrive or ignition";
    /// VLAN the inspection image talks in.
    Vlan, vlan: VlanId, "vlan", Host, "a number from 1 to 4094";
    /// Several links as one.
    Bond, bond: Bond, "bond", Host, "802.3ad or active-backup, then maybe : and a comma list of MAC addresses";
    /// How the inspection image comes by an IPv6 address.
    Ip6, ip6: Ip6, "ip6", Host, "auto, dhcp, off or ADDR/LEN[,GATEWAY[,DNS]]";
    /// Largest packet on the boot interface.
    Mtu, mtu: Mtu, "mtu", Host, "a number of bytes from 576 to 9216";
    /// Where the inspection image learns the time.
    Ntp, ntp: NtpServers, "ntp", Host, "one to four host names or addresses, separated by commas";
}

impl AgentOption {
    /// The option of a key without the prefix.
    pub fn from_key(key: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|option| option.key() == key)
    }

    /// Its text on a kernel command line: of duplicates the last counts, and an empty value is none.
    pub fn last_in(self, cmdline: &str) -> Option<&str> {
        let last = super::words(cmdline).rfind(|(key, _)| *key == self.key());
        last.map(|(_, value)| value).filter(|value| !value.is_empty())
    }
}

impl std::fmt::Display for AgentOption {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{PREFIX}{}", self.key())
    }
}

fn value<T>(option: AgentOption, text: &str) -> Result<Option<T>, OptionError>
where
    T: std::str::FromStr<Err: std::fmt::Display>,
{
    if text.is_empty() {
        return Ok(None);
    }
    if !is_word(text) {
        let accepted = option.accepted();
        let reason =
            format!("not one word of printable ASCII without quotes, `\\` and `$`; expected {accepted}");
        return Err(OptionError { option, reason });
    }
    text.parse().map(Some).map_err(|e: T::Err| OptionError { option, reason: e.to_string() })
}
