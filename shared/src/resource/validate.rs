//! Cross-field rules of the objects operators write (contract section 13).
//!
//! What one value alone must look like is settled by its type when it is parsed; what remains is how values
//! stand to each other. Admission, `farrier apply` and the property tests use the same rules.

use std::collections::BTreeSet;

use super::agent_options::AgentOptionTexts;
use super::host::PhysicalHost;
use super::machine::{Beskar7Machine, LabelRequirement};
use super::secret::Secret;
use super::{API_VERSION, Resource};
use crate::contract::options::{self, Scope};
use crate::contract::web_url::WebUrl;

/// Longest checksum-file URL, in bytes.
pub const MAX_DIGEST_URL: usize = 2048;
/// Longest provider id, in bytes.
pub const MAX_PROVIDER_ID: usize = 512;

/// A field that contradicts the rules.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct ValidationError {
    /// Path of the field, such as `spec.redfishConnection.address`.
    pub field: String,
    /// What is wrong and what is expected. Never a secret.
    pub problem: String,
}

fn error(field: &str, problem: impl Into<String>) -> ValidationError {
    ValidationError { field: field.to_owned(), problem: problem.into() }
}

fn check(holds: bool, field: &str, problem: &str) -> Result<(), ValidationError> {
    if holds { Ok(()) } else { Err(error(field, problem)) }
}

fn same_type<R: Resource>(api_version: &str, kind: &str) -> Result<(), ValidationError> {
    let shown = |text: &str| text.chars().take(80).collect::<String>();
    if api_version != R::API_VERSION {
        let problem = format!("expected {:?}, got {:?}", R::API_VERSION, shown(api_version));
        return Err(error("apiVersion", problem));
    }
    if kind != R::KIND {
        return Err(error("kind", format!("expected {:?}, got {:?}", R::KIND, shown(kind))));
    }
    Ok(())
}

impl PhysicalHost {
    /// Checks what the types alone cannot.
    ///
    /// # Errors
    /// The first field that contradicts the rules.
    pub fn validate(&self) -> Result<(), ValidationError> {
        same_type::<Self>(&self.api_version, &self.kind)?;
        bmc_address(&self.spec.redfish_connection.address)?;
        let mut seen = BTreeSet::new();
        for (index, mac) in self.spec.boot_mac_addresses.iter().enumerate() {
            let field = format!("spec.bootMACAddresses[{index}]");
            check(seen.insert(mac.as_bytes()), &field, "listed twice; remove one")?;
            let multicast = mac.as_bytes()[0] & 1 == 1;
            check(!multicast, &field, "a multicast address; expected that of one interface")?;
        }
        agent_options(Scope::Host, &self.spec.agent_options)?;
        match &self.spec.consumer_ref {
            None => Ok(()),
            Some(consumer) => {
                let field = "spec.consumerRef";
                check(!consumer.name.is_empty(), field, "names no object; set name or remove the reference")?;
                check(
                    consumer.kind == Beskar7Machine::KIND && consumer.api_version == API_VERSION,
                    field,
                    "expected kind Beskar7Machine and this project's apiVersion",
                )?;
                check(
                    consumer.namespace.is_empty() || consumer.namespace == self.metadata.namespace.as_str(),
                    field,
                    "names another namespace; a host is claimed within its own",
                )
            }
        }
    }
}

/// A BMC address: origin and path, nothing that could carry credentials or be lost on the way.
fn bmc_address(address: &WebUrl) -> Result<(), ValidationError> {
    let field = "spec.redfishConnection.address";
    let url = address.to_url();
    let has_user = !url.username().is_empty() || url.password().is_some();
    check(!has_user, field, "holds a user name or password; those belong in the credentials Secret")?;
    check(url.query().is_none(), field, "holds a query; expected http(s)://HOST[:PORT][/PATH]")?;
    check(url.fragment().is_none(), field, "holds a fragment; expected http(s)://HOST[:PORT][/PATH]")
}

impl Beskar7Machine {
    /// Checks what the types alone cannot.
    ///
    /// A bad operator in `hostSelector` is no error here: it is a terminal failure of the machine with its own
    /// reason.
    ///
    /// # Errors
    /// The first field that contradicts the rules.
    pub fn validate(&self) -> Result<(), ValidationError> {
        same_type::<Self>(&self.api_version, &self.kind)?;
        let spec = &self.spec;
        match (&spec.target_image_digest, &spec.target_image_digest_url) {
            (Some(_), Some(_)) => {
                return Err(error(
                    "spec",
                    "set exactly one of targetImageDigest and targetImageDigestURL, not both",
                ));
            }
            (None, None) => {
                return Err(error("spec", "set exactly one of targetImageDigest and targetImageDigestURL"));
            }
            (None, Some(url)) => digest_url(url)?,
            (Some(_), None) => {}
        }
        if let Some(id) = &spec.provider_id {
            check(id.to_string().len() <= MAX_PROVIDER_ID, "spec.providerID", "longer than 512 bytes")?;
        }
        if let Some(wanted) = &spec.hardware_requirements {
            let minima = [
                ("spec.hardwareRequirements.minCPUCores", wanted.min_cpu_cores),
                ("spec.hardwareRequirements.minMemoryGB", wanted.min_memory_gb),
                ("spec.hardwareRequirements.minDiskGB", wanted.min_disk_gb),
            ];
            for (field, minimum) in minima {
                check(
                    minimum.is_none_or(|n| n >= 1),
                    field,
                    "must be at least 1; remove it to check nothing",
                )?;
            }
        }
        if let Some(selector) = &spec.host_selector {
            selector.match_expressions.iter().enumerate().try_for_each(requirement)?;
        }
        agent_options(Scope::Machine, &spec.agent_options)
    }
}

fn agent_options(holder: Scope, given: &AgentOptionTexts) -> Result<(), ValidationError> {
    given.pairs().try_for_each(|(key, value)| {
        let shown: String = key.escape_debug().take(80).collect();
        let field = format!("spec.agentOptions.{shown}");
        options::check(holder, key, value).map(drop).map_err(|e| error(&field, e.to_string()))
    })
}

fn digest_url(url: &WebUrl) -> Result<(), ValidationError> {
    let field = "spec.targetImageDigestURL";
    let parsed = url.to_url();
    check(parsed.scheme() == "https", field, "must be https: the digest is what the image is trusted by")?;
    check(url.as_str().len() <= MAX_DIGEST_URL, field, "longer than 2048 bytes")?;
    let has_user = !parsed.username().is_empty() || parsed.password().is_some();
    check(!has_user, field, "holds a user name or password; remove it")
}

fn requirement((index, wanted): (usize, &LabelRequirement)) -> Result<(), ValidationError> {
    let field = format!("spec.hostSelector.matchExpressions[{index}]");
    check(!wanted.key.is_empty(), &field, "key is empty; name a label")
}

impl Secret {
    /// Checks what the types alone cannot.
    ///
    /// # Errors
    /// The first field that contradicts the rules. Names keys, never values.
    pub fn validate(&self) -> Result<(), ValidationError> {
        same_type::<Self>(&self.api_version, &self.kind)?;
        let keys =
            self.data.keys().map(|k| ("data", k)).chain(self.string_data.keys().map(|k| ("stringData", k)));
        for (field, key) in keys {
            let allowed = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
            check(
                !key.is_empty() && key.len() <= 253 && key.bytes().all(allowed),
                field,
                "holds a key that is not 1 to 253 letters, digits, '-', '_' and '.'",
            )?;
        }
        Ok(())
    }
}
