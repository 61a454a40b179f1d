//! Making a boot script, and telling before anything is booted whether one can be made.

use std::iter;
use std::sync::Arc;

use farrier_shared::contract::cmdline::{BootScript, MAX_SCRIPT, ScriptError};
use farrier_shared::contract::cut_line::MAX_LINE;
use farrier_shared::contract::{Digest, HostKey, MacAddress, Time, Token, WebUrl};
use farrier_shared::lifecycle::credentials::Credentials;
use farrier_shared::resource::agent_options::AgentOptionTexts;
use farrier_shared::resource::{Beskar7Machine, PhysicalHost};

use super::CaBundle;

/// Makes boot scripts of objects and what the controller was started with.
#[derive(Clone)]
pub struct Renderer {
    /// The CA agents must trust.
    pub ca: Arc<dyn CaBundle>,
    /// Base URL of the callback listener, as agents call it.
    pub url_base: WebUrl,
    /// Render the reference's bytes and nothing of our own.
    pub reference_boot: bool,
}

impl std::fmt::Debug for Renderer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Renderer").field("url_base", &self.url_base).finish_non_exhaustive()
    }
}

/// What firmware says of itself.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Firmware {
    /// Address of the interface it boots from.
    pub(crate) mac: Option<MacAddress>,
    /// It is UEFI.
    pub(crate) efi: bool,
}

impl Firmware {
    /// The one whose script is the longest.
    const LONGEST: Self = Self { mac: Some(MacAddress::from_bytes([0; 6])), efi: true };
}

/// Whose script, and with what secrets.
struct Of<'a> {
    host: &'a HostKey,
    host_options: &'a AgentOptionTexts,
    machine: &'a Beskar7Machine,
    token: &'a Token,
    run: &'a str,
    /// When the run was ordered, by which the agent knows a clock that is days off.
    ordered: Time,
}

/// Why there is no script.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unrendered {
    /// The digest is yet to be fetched.
    #[error("the machine has no image digest yet")]
    NoDigest,
    /// The CA bundle cannot be read.
    #[error("{0}")]
    Ca(String),
    /// It is longer than firmware takes, or an option is no plain word.
    #[error(transparent)]
    Script(#[from] ScriptError),
}

/// A machine whose script would not be served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TooLong {
    /// The field to shorten: that which takes most.
    pub field: String,
    /// How long the script is, what it may be, and what the field takes of it.
    pub problem: String,
}

impl Renderer {
    /// The script of a host's run. Depends on what is given alone, so that the same request gets the same bytes.
    pub(crate) fn script(
        &self,
        host: &PhysicalHost,
        machine: &Beskar7Machine,
        credentials: &Credentials,
        firmware: Firmware,
    ) -> Result<String, Unrendered> {
        let Credentials { token, run, token_issued_at: ordered, .. } = credentials;
        let host_options = &host.spec.agent_options;
        let key = host.metadata.key();
        self.render(&Of { host: &key, host_options, machine, token, run, ordered: *ordered }, firmware)
    }

    /// Whether any firmware will get a script for this run.
    pub(crate) fn check(
        &self,
        host: &PhysicalHost,
        machine: &Beskar7Machine,
        credentials: &Credentials,
    ) -> Result<(), Unrendered> {
        self.script(host, machine, credentials, Firmware::LONGEST).map(drop)
    }

    /// Whether a script of this machine fits on this host, whatever the run. What is not the machine's fault is not
    /// complained of here.
    pub(crate) fn fits(
        &self,
        host: &HostKey,
        host_options: &AgentOptionTexts,
        machine: &Beskar7Machine,
    ) -> Result<(), TooLong> {
        let (token, run, ordered) =
            (Token::from_random([0; 32]), "0123456789abcdef", Time::from_unix(9_999_999_999));
        let mut machine = machine.clone();
        machine.spec.target_image_digest.get_or_insert(Digest::from_bytes([0; 32]));
        let of = Of { host, host_options, machine: &machine, token: &token, run, ordered };
        match self.render(&of, Firmware::LONGEST) {
            Err(Unrendered::Script(ScriptError::TooLong { len })) => Err(script_too_long(len, &machine)),
            Err(Unrendered::Script(ScriptError::LineTooLong { len, ca })) => {
                Err(line_too_long(len, ca, &machine))
            }
            _ => Ok(()),
        }
    }

    fn render(&self, of: &Of<'_>, firmware: Firmware) -> Result<String, Unrendered> {
        let (spec, status) = (&of.machine.spec, &of.machine.status);
        let digest = spec.target_image_digest.or(status.target_image_digest).ok_or(Unrendered::NoDigest)?;
        let ca_pem = self.ca.pem().map_err(Unrendered::Ca)?;
        // The host's before the machine's, since of duplicates the last counts.
        let ordered = of.ordered.unix().to_string();
        let own = [("run", of.run), ("time", ordered.as_str())].into_iter();
        let own = own.chain(of.host_options.pairs()).chain(spec.agent_options.pairs());
        let extra: Vec<(&str, &str)> = if self.reference_boot { Vec::new() } else { own.collect() };
        let script = BootScript {
            inspection_image: &spec.inspection_image_url,
            api: &self.url_base,
            host: of.host,
            token: of.token,
            target: &spec.target_image_url,
            target_digest: &digest,
            ca_pem: &ca_pem,
            disk: spec.target_disk.as_ref(),
            static_ip: spec.static_ip.as_ref(),
            bootif: firmware.mac,
            extra: &extra,
            quiet: !self.reference_boot,
            efi: firmware.efi,
        };
        Ok(script.render()?)
    }
}

fn script_too_long(len: usize, machine: &Beskar7Machine) -> TooLong {
    // It stands in the script twice.
    let image = 2 * machine.spec.inspection_image_url.as_str().len();
    let image = ("spec.inspectionImageURL".to_owned(), image);
    let (field, takes) = largest(iter::once(image).chain(in_the_line(machine)));
    let problem = format!(
        "makes the boot script {len} bytes long, and firmware is sure to take {MAX_SCRIPT} only; this field takes \
         {takes} of them"
    );
    TooLong { field, problem }
}

fn line_too_long(len: usize, ca: usize, machine: &Beskar7Machine) -> TooLong {
    let (field, takes) = largest(in_the_line(machine));
    let problem = format!(
        "makes the kernel command line of the boot script {len} bytes long, and a kernel takes {MAX_LINE} only; this \
         field takes {takes} of them, the controller's CA bundle {ca}"
    );
    TooLong { field, problem }
}

/// The fields of a machine that stand on the kernel's line, and what each takes of it.
fn in_the_line(machine: &Beskar7Machine) -> impl Iterator<Item = (String, usize)> {
    let spec = &machine.spec;
    let fields = [
        ("spec.targetImageURL".to_owned(), spec.target_image_url.as_str().len()),
        ("spec.targetDisk".to_owned(), spec.target_disk.as_ref().map_or(0, |disk| disk.as_str().len())),
    ];
    let options = spec.agent_options.pairs();
    fields.into_iter().chain(options.map(|(key, value)| (format!("spec.agentOptions.{key}"), value.len())))
}

fn largest(fields: impl Iterator<Item = (String, usize)>) -> (String, usize) {
    fields.max_by_key(|(_, takes)| *takes).unwrap_or_default()
}
