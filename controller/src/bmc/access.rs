//! Whether a Secret's credentials may go to a host's BMC address, and in what way (contract section 10).
//!
//! Whoever may edit a host must not be able to send its BMC password elsewhere, so the Secret itself says which
//! addresses it is for, whether unverified transport is acceptable and which CA may vouch for the BMC. All of it
//! is decided here, over plain data, before a client exists. Nothing that is unclear is allowed.

use std::fmt;

use farrier_shared::lifecycle::fault::{BmcObservation, Failure, Refusal};
use farrier_shared::resource::Secret;
use farrier_shared::resource::host::RedfishConnection;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use url::Url;
use zeroize::Zeroizing;

use super::address_list::{AddressList, is_dns_name};

/// Annotation of the Secret: where its credentials may go.
pub const ADDRESSES: &str = "beskar7.infrastructure.cluster.x-k8s.io/bmc-addresses";
/// Annotation of the Secret: `true` allows http and unverified TLS.
pub const INSECURE_TRANSPORT: &str = "beskar7.infrastructure.cluster.x-k8s.io/bmc-insecure-transport";
/// Annotation of the Secret: the one Secret whose CA may vouch for the BMC.
pub const CA_SECRET: &str = "beskar7.infrastructure.cluster.x-k8s.io/bmc-ca-secret";

/// Everything needed to talk to one BMC; having one means that doing so is allowed.
#[derive(Clone)]
pub struct HostAccess {
    /// Base URL: scheme, host, port and perhaps a path.
    pub base: Url,
    /// User name.
    pub username: Zeroizing<String>,
    /// Password.
    pub password: Zeroizing<String>,
    /// What the BMC's certificate is checked against.
    pub trust: Trust,
}

/// What a BMC's certificate is checked against.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Trust {
    /// The system's certificate authorities.
    System,
    /// These alone, PEM: as a CA, or as the very certificate the BMC shows.
    Only(Vec<u8>),
    /// Nothing: the Secret consents to it.
    Nothing,
}

impl fmt::Debug for HostAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let trust = match &self.trust {
            Trust::System => "system",
            Trust::Only(_) => "own CA",
            Trust::Nothing => "nothing",
        };
        write!(f, "HostAccess({}, trusting {trust}, credentials redacted)", authority(&self.base))
    }
}

/// Host and port, for logs and errors.
pub(super) fn authority(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// Why the BMC may not be asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AccessError {
    /// The operator has not allowed it.
    #[error("{message}")]
    Refused {
        /// Which rule.
        refusal: Refusal,
        /// For people; holds no annotation's value.
        message: String,
    },
    /// The address itself cannot be used.
    #[error("the BMC address {problem}; expected https://HOST[:PORT] with a DNS name or an IP address")]
    Address {
        /// What is wrong with it.
        problem: &'static str,
    },
}

impl AccessError {
    /// What a host's pass makes of it.
    pub fn observation(&self) -> BmcObservation {
        match self {
            Self::Refused { refusal, message } => {
                BmcObservation::Refused { refusal: *refusal, message: message.clone() }
            }
            Self::Address { .. } => {
                BmcObservation::Failed { failure: Failure::Connection, message: self.to_string() }
            }
        }
    }
}

/// Decides. `secret` is the one `credentialsSecretRef` names, `ca` the one `caBundleSecretRef` names; `None`
/// when there is no such Secret.
pub fn authorize(
    connection: &RedfishConnection,
    secret: Option<&Secret>,
    ca: Option<&Secret>,
) -> Result<HostAccess, AccessError> {
    let name = &connection.credentials_secret_ref;
    let refuse = |refusal, message: String| AccessError::Refused { refusal, message };
    let unauthorized = |message| refuse(Refusal::CredentialsNotAuthorized, message);
    let secret = secret.ok_or_else(|| {
        refuse(
            Refusal::MissingCredentials,
            format!("Secret {name} does not exist; create it with username and password"),
        )
    })?;
    let base = parse_address(connection)?;
    let host = base.host().ok_or(AccessError::Address { problem: "names no host" })?;
    let annotation = |key| secret.metadata.annotations.get(key).map(String::as_str);

    let list = annotation(ADDRESSES).ok_or_else(|| {
        unauthorized(format!(
            "Secret {name} does not say where its credentials may go; annotate it with {ADDRESSES}"
        ))
    })?;
    let list = AddressList::parse(list)
        .map_err(|e| unauthorized(format!("annotation {ADDRESSES} of Secret {name} is void: {e}")))?;
    if !list.allows(&host) {
        return Err(unauthorized(format!(
            "Secret {name} does not list {host} in its annotation {ADDRESSES}; its credentials stay here"
        )));
    }

    let skip_verify = connection.insecure_skip_verify == Some(true);
    let plain = base.scheme() == "http";
    if (plain || skip_verify) && annotation(INSECURE_TRANSPORT) != Some("true") {
        let what = if plain { "plain http" } else { "unverified TLS" };
        return Err(unauthorized(format!(
            "Secret {name} does not consent to {what}; use a verified https address, or annotate it with \
             {INSECURE_TRANSPORT}=true"
        )));
    }

    let ca_name = connection.ca_bundle_secret_ref.as_ref();
    if skip_verify && ca_name.is_some() {
        return Err(refuse(
            Refusal::InsecureCaBundleConflict,
            "insecureSkipVerify and caBundleSecretRef exclude each other; remove one".to_owned(),
        ));
    }
    if let Some(ca_name) = ca_name
        && annotation(CA_SECRET) != Some(ca_name.as_str())
    {
        return Err(unauthorized(format!(
            "Secret {name} does not name {ca_name} in its annotation {CA_SECRET}"
        )));
    }

    let credential = |key: &str| {
        let text = secret.data.get(key).and_then(|bytes| std::str::from_utf8(bytes.expose()).ok());
        text.filter(|text| !text.is_empty()).map(|text| Zeroizing::new(text.to_owned())).ok_or_else(|| {
            refuse(Refusal::MissingCredentials, format!("Secret {name} has no usable {key}; add it as text"))
        })
    };
    let (username, password) = (credential("username")?, credential("password")?);
    let trust = match ca_name {
        _ if skip_verify => Trust::Nothing,
        None => Trust::System,
        Some(ca_name) => Trust::Only(ca_bundle(ca).ok_or_else(|| {
            refuse(
                Refusal::CaBundleFetchFailed,
                format!("Secret {ca_name} has no certificate in PEM under ca.crt or tls.crt"),
            )
        })?),
    };
    Ok(HostAccess { base, username, password, trust })
}

fn parse_address(connection: &RedfishConnection) -> Result<Url, AccessError> {
    let url = connection.address.to_url();
    let problem = match url.host() {
        None => Some("names no host"),
        _ if !url.username().is_empty() || url.password().is_some() => Some("holds a user or password"),
        _ if url.query().is_some() => Some("holds a query"),
        _ if url.fragment().is_some() => Some("holds a fragment"),
        Some(url::Host::Domain(name)) if !is_dns_name(name) => Some("names a host that is not a DNS name"),
        Some(_) => None,
    };
    problem.map_or(Ok(url), |problem| Err(AccessError::Address { problem }))
}

/// The first of `ca.crt` and `tls.crt` that is not empty, if certificates are in it.
fn ca_bundle(ca: Option<&Secret>) -> Option<Vec<u8>> {
    let data = &ca?.data;
    let pem = ["ca.crt", "tls.crt"].iter().find_map(|k| data.get(*k).filter(|b| !b.expose().is_empty()))?;
    let certificates = CertificateDer::pem_slice_iter(pem.expose()).collect::<Result<Vec<_>, _>>().ok()?;
    (!certificates.is_empty()).then(|| pem.expose().to_vec())
}

#[cfg(test)]
#[path = "access_tests.rs"]
mod tests;
