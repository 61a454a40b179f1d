//! The kernel command line (contract section 5): parsed by the agent, rendered by the controller.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::bootarg::BootArg;
use super::cut_line::{END, MAX_LINE};
use super::digest::Digest;
use super::disk_pin::DiskPin;
use super::mac::MacAddress;
use super::name::{HostKey, Name};
use super::options;
use super::provider_id::ProviderId;
use super::secret::Token;
use super::static_ip::StaticIp;
use super::web_url::WebUrl;

/// How long the agent waits for user-data when `beskar7.timeout` says nothing.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30 * 60);
/// Largest boot script, in bytes; SEC-10.
pub const MAX_SCRIPT: usize = 4096;

/// Everything one run needs, as given on the kernel command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BootParams {
    /// Base URL of the callback listener.
    pub api: WebUrl,
    /// The host this machine is.
    pub host: HostKey,
    /// Bearer token.
    pub token: Token,
    /// URL of the OS image.
    pub target: WebUrl,
    /// Digest of the served bytes.
    pub target_digest: Digest,
    /// Provider id to plant.
    pub provider_id: ProviderId,
    /// PEM bundle that alone is trusted for callbacks.
    pub ca_pem: Vec<u8>,
    /// Pinned target disk.
    pub disk: Option<DiskPin>,
    /// Static IPv4 configuration.
    pub static_ip: Option<StaticIp>,
    /// How long to wait for user-data.
    pub timeout: Duration,
    /// Log more, and keep the console for a while after a failure.
    pub debug: bool,
    /// The interface the firmware booted from.
    pub bootif: Option<MacAddress>,
    /// `farrier.*` parameters by key without the prefix; unknown ones are kept, for the rooms that know them.
    pub extra: HashMap<String, String>,
}

/// Why a command line holds no run. Names keys, never values.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CmdlineError {
    /// Required keys are absent or empty: all of them at once.
    #[error("the kernel command line lacks {}; boot through the controller's script", .keys.join(", "))]
    Missing {
        /// The absent keys.
        keys: Vec<&'static str>,
    },
    /// A value does not parse.
    #[error("kernel parameter {key} is invalid: {reason}")]
    Invalid {
        /// The key.
        key: &'static str,
        /// What is wrong, without the value.
        reason: &'static str,
    },
}

impl BootParams {
    /// Reads a kernel command line.
    ///
    /// Words are split at white space, keys from values at the first `=`; of duplicates the last counts, an
    /// empty value counts as absent, unknown keys are ignored.
    ///
    /// # Errors
    /// [`CmdlineError::Missing`] with every absent required key, else the first value that does not parse.
    pub fn parse(cmdline: &str) -> Result<Self, CmdlineError> {
        let mut words: HashMap<&str, &str> = HashMap::new();
        for word in cmdline.split_ascii_whitespace() {
            let (key, value) = word.split_once('=').unwrap_or((word, ""));
            words.insert(key, value);
        }
        let get = |arg: BootArg| words.get(arg.key()).copied().filter(|v| !v.is_empty());
        let missing: Vec<_> = BootArg::ALL
            .into_iter()
            .filter(|a| a.required() && get(*a).is_none())
            .map(BootArg::key)
            .collect();
        if !missing.is_empty() {
            return Err(CmdlineError::Missing { keys: missing });
        }
        let invalid = |arg: BootArg, reason| CmdlineError::Invalid { key: arg.key(), reason };
        let text = |arg| get(arg).unwrap_or_default();
        let name =
            |arg: BootArg| text(arg).parse::<Name>().map_err(|_| invalid(arg, "not a lower-case DNS name"));
        let url = |arg: BootArg| {
            text(arg).parse::<WebUrl>().map_err(|_| invalid(arg, "not an http or https URL with a host"))
        };
        let extra = options::words(cmdline)
            .filter(|(key, _)| *key != END)
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect();
        Ok(Self {
            api: url(BootArg::Api)?,
            host: HostKey::new(name(BootArg::Namespace)?, name(BootArg::Host)?),
            token: text(BootArg::Token)
                .parse()
                .map_err(|_| invalid(BootArg::Token, "not 43 characters of base64url"))?,
            target: url(BootArg::Target)?,
            target_digest: text(BootArg::TargetDigest)
                .parse()
                .map_err(|_| invalid(BootArg::TargetDigest, "not sha256: and 64 lower-case hex digits"))?,
            provider_id: text(BootArg::ProviderId)
                .parse()
                .map_err(|_| invalid(BootArg::ProviderId, "not b7://<namespace>/<host>"))?,
            ca_pem: STANDARD
                .decode(text(BootArg::Ca))
                .map_err(|_| invalid(BootArg::Ca, "not standard base64 of a PEM bundle"))?,
            disk: get(BootArg::Disk)
                .map(str::parse)
                .transpose()
                .map_err(|_| invalid(BootArg::Disk, "not a device path"))?,
            static_ip: get(BootArg::Ip)
                .map(str::parse)
                .transpose()
                .map_err(|_| invalid(BootArg::Ip, "not <ip>::[<gateway>]:<mask>[:<dns>]"))?,
            timeout: get(BootArg::Timeout)
                .map(|v| v.parse().map(Duration::from_secs))
                .transpose()
                .map_err(|_| invalid(BootArg::Timeout, "not a number of seconds"))?
                .unwrap_or(DEFAULT_TIMEOUT),
            debug: get(BootArg::Debug).is_some_and(|v| v.eq_ignore_ascii_case("true")),
            bootif: get(BootArg::BootIf)
                .map(MacAddress::from_bootif)
                .transpose()
                .map_err(|_| invalid(BootArg::BootIf, "not 01-aa-bb-cc-dd-ee-ff"))?,
            extra,
        })
    }
}

/// What a boot script is rendered from: each part already parsed, so nothing in it can add a parameter.
#[derive(Clone, Debug)]
pub struct BootScript<'a> {
    /// Where vmlinuz and initrd.img are, without a trailing slash of its own.
    pub inspection_image: &'a WebUrl,
    /// Base URL of the callback listener.
    pub api: &'a WebUrl,
    /// The host.
    pub host: &'a HostKey,
    /// Bearer token.
    pub token: &'a Token,
    /// URL of the OS image.
    pub target: &'a WebUrl,
    /// Digest of the served bytes.
    pub target_digest: &'a Digest,
    /// PEM bundle for callbacks.
    pub ca_pem: &'a [u8],
    /// Pinned target disk.
    pub disk: Option<&'a DiskPin>,
    /// Static IPv4 configuration.
    pub static_ip: Option<&'a StaticIp>,
    /// The interface the firmware booted from.
    pub bootif: Option<MacAddress>,
    /// `farrier.*` parameters in order, keys without the prefix. Empty for a byte-exact reference render.
    pub extra: &'a [(&'a str, &'a str)],
    /// Keeps from the console what the kernel says at notice level and below, which is where it prints its command
    /// line with the token in it; warnings and errors stay. False for a byte-exact reference render.
    pub quiet: bool,
    /// Whether the first stage runs under UEFI: old iPXE needs `initrd=initrd.img` on the kernel line there.
    pub efi: bool,
}

/// Why no script can be rendered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScriptError {
    /// Longer than firmware is sure to take.
    #[error(
        "boot script is {len} bytes, more than the {MAX_SCRIPT} allowed; shorten the CA bundle, the URLs or the agent options"
    )]
    TooLong {
        /// Its length in bytes.
        len: usize,
    },
    /// The kernel would drop the end of its line, and with it the pinned disk.
    #[error(
        "boot script's kernel command line is {len} bytes, more than the {MAX_LINE} a kernel takes, and the CA bundle \
         takes {ca} of them; use a CA of one elliptic-curve certificate, or shorten the URLs or the agent options"
    )]
    LineTooLong {
        /// Its length in bytes.
        len: usize,
        /// How much of it the CA bundle takes, in base64.
        ca: usize,
    },
    /// An additive parameter would break out of its word.
    #[error(
        "boot parameter farrier.{key} is not one plain word of printable ASCII without quotes, `\\` and `$`"
    )]
    Unsafe {
        /// The key, cut to a printable length.
        key: String,
    },
}

impl BootScript<'_> {
    /// The iPXE script, byte-equal to the reference when [`extra`](Self::extra) is empty, [`quiet`](Self::quiet)
    /// and [`efi`](Self::efi) are false.
    ///
    /// # Errors
    /// When the script exceeds [`MAX_SCRIPT`] or the kernel's line [`MAX_LINE`], or an additive parameter is not one
    /// plain word.
    pub fn render(&self) -> Result<String, ScriptError> {
        let image = self.inspection_image;
        let ca = STANDARD.encode(self.ca_pem);
        let mut script = format!(
            "#!ipxe\nkernel {image}/vmlinuz beskar7.api={api} beskar7.namespace={ns} beskar7.host={name} \
             beskar7.token={token} beskar7.target={target} beskar7.target-digest={digest} \
             beskar7.provider-id={provider_id} beskar7.ca={ca}",
            api = self.api,
            ns = self.host.namespace,
            name = self.host.name,
            token = self.token.expose(),
            target = self.target,
            digest = self.target_digest,
            provider_id = ProviderId::of(self.host),
        );
        // Writing to a String cannot fail.
        if let Some(disk) = self.disk {
            let _ = write!(script, " beskar7.disk={disk}");
        }
        if let Some(ip) = self.static_ip {
            let _ = write!(script, " beskar7.ip={ip}");
        }
        if let Some(mac) = self.bootif {
            let _ = write!(script, " BOOTIF={}", mac.to_bootif());
        }
        for (key, value) in self.extra {
            if !options::is_word(key) || key.contains('=') || !options::is_word(value) {
                return Err(ScriptError::Unsafe { key: key.escape_debug().take(64).collect() });
            }
            let _ = write!(script, " {}{key}={value}", options::PREFIX);
        }
        if self.quiet {
            // Levels below this one are printed (kernel doc, kernel-parameters): 5 is notice.
            script.push_str(" loglevel=5");
        }
        if self.efi {
            script.push_str(" initrd=initrd.img");
        }
        if !self.extra.is_empty() {
            // The very last, so that whatever is cut off takes it along.
            let _ = write!(script, " {}{END}=1", options::PREFIX);
        }
        // Under UEFI the kernel's line begins with the name of its file.
        let before = format!("#!ipxe\nkernel {image}/").len();
        let line = script.len().saturating_sub(before);
        if line > MAX_LINE {
            return Err(ScriptError::LineTooLong { len: line, ca: ca.len() });
        }
        let _ = write!(script, "\ninitrd {image}/initrd.img\nboot\n");
        if script.len() > MAX_SCRIPT { Err(ScriptError::TooLong { len: script.len() }) } else { Ok(script) }
    }
}
