//! Making a boot script, and telling before anything is booted whether one can be made.

use std::iter;
use std::sync::Arc;

use farrier_shared::contract::cmdline::{BootScript, MAX_SCRIPT, ScriptError};
use farrier_shared::contract::{Digest, HostKey, MacAddress, Token, WebUrl};
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
        (token, run): (&Token, &str),
        firmware: Firmware,
    ) -> Result<String, Unrendered> {
        let host_options = &host.spec.agent_options;
        let key = host.metadata.key();
        self.render(&Of { host: &key, host_options, machine, token, run }, firmware)
    }

    /// Whether any firmware will get a script for this run.
    pub(crate) fn check(
        &self,
        host: &PhysicalHost,
        machine: &Beskar7Machine,
        secrets: (&Token, &str),
    ) -> Result<(), Unrendered> {
        self.script(host, machine, secrets, Firmware::LONGEST).map(drop)
    }

    /// Whether a script of this machine fits on this host, whatever the run. What is not the machine's fault is not
    /// complained of here.
    pub(crate) fn fits(
        &self,
        host: &HostKey,
        host_options: &AgentOptionTexts,
        machine: &Beskar7Machine,
    ) -> Result<(), TooLong> {
        let (token, run) = (Token::from_random([0; 32]), "0123456789abcdef");
        let mut machine = machine.clone();
        machine.spec.target_image_digest.get_or_insert(Digest::from_bytes([0; 32]));
        let of = Of { host, host_options, machine: &machine, token: &token, run };
        match self.render(&of, Firmware::LONGEST) {
            Err(Unrendered::Script(ScriptError::TooLong { len })) => Err(too_long(len, &machine)),
            _ => Ok(()),
        }
    }

    fn render(&self, of: &Of<'_>, firmware: Firmware) -> Result<String, Unrendered> {
        let (spec, status) = (&of.machine.spec, &of.machine.status);
        let digest = spec.target_image_digest.or(status.target_image_digest).ok_or(Unrendered::NoDigest)?;
        let ca_pem = self.ca.pem().map_err(Unrendered::Ca)?;
        // The host's before the machine's, since of duplicates the last counts.
        let own =
            iter::once(("run", of.run)).chain(of.host_options.pairs()).chain(spec.agent_options.pairs());
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

/// Names the field of the machine that takes most of the script.
fn too_long(len: usize, machine: &Beskar7Machine) -> TooLong {
    let spec = &machine.spec;
    let mut parts = vec![
        // It stands in the script twice.
        ("spec.inspectionImageURL".to_owned(), 2 * spec.inspection_image_url.as_str().len()),
        ("spec.targetImageURL".to_owned(), spec.target_image_url.as_str().len()),
        ("spec.targetDisk".to_owned(), spec.target_disk.as_ref().map_or(0, |disk| disk.as_str().len())),
    ];
    parts.extend(
        spec.agent_options.pairs().map(|(key, value)| (format!("spec.agentOptions.{key}"), value.len())),
    );
    let (field, takes) = parts.into_iter().max_by_key(|(_, takes)| *takes).unwrap_or_default();
    let problem = format!(
        "makes the boot script {len} bytes long, and firmware is sure to take {MAX_SCRIPT} only; this field takes \
         {takes} of them"
    );
    TooLong { field, problem }
}
