//! Making the CA and the certificates it issues.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;

use farrier_shared::contract::Time;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType, date_time_ymd,
};
use rustls_pki_types::CertificateDer;
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::prelude::{FromDer as _, X509Certificate};
use zeroize::Zeroizing;

use super::files::TlsError;
use super::names::{ServingName, ServingNames};

/// One day.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// Life of the CA: ten years.
pub const CA_LIFE: Duration = Duration::from_secs(3652 * DAY.as_secs());
/// Life of a serving certificate; some verifiers refuse more than 397 days.
pub const SERVING_LIFE: Duration = Duration::from_secs(397 * DAY.as_secs());
/// How far back certificates are dated: clocks of machines that boot are often behind.
const BACKDATE: Duration = Duration::from_secs(2 * DAY.as_secs());

/// A certificate and its key, both PEM.
#[derive(Debug)]
pub struct Issued {
    /// Certificate.
    pub cert_pem: String,
    /// Key; zeroized on drop.
    pub key_pem: SecretPem,
}

/// A private key as PEM text.
pub struct SecretPem(Zeroizing<String>);

impl SecretPem {
    /// The text. Never log it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for SecretPem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SecretPem(redacted)")
    }
}

fn issue_error(error: impl std::fmt::Display) -> TlsError {
    TlsError::Issue { problem: error.to_string() }
}

/// Makes a new CA.
///
/// # Errors
/// When the system has no random numbers.
pub fn new_authority(now: Time) -> Result<Issued, TlsError> {
    let key = KeyPair::generate().map_err(issue_error)?;
    let cert_pem = self_signed(&key, now)?;
    Ok(Issued { cert_pem, key_pem: SecretPem(Zeroizing::new(key.serialize_pem())) })
}

/// The certificate of a CA that has this key, PEM; nothing when that is no key.
pub fn authority_of(key_pem: &[u8], now: Time) -> Option<String> {
    let key = KeyPair::from_pem(std::str::from_utf8(key_pem).ok()?).ok()?;
    self_signed(&key, now).ok()
}

fn self_signed(key: &KeyPair, now: Time) -> Result<String, TlsError> {
    let mut params = dated(now, CA_LIFE)?;
    // A random part in the name: two installations' CAs must not be taken for one another by their subject.
    let mut tag = [0_u8; 4];
    getrandom::fill(&mut tag).map_err(issue_error)?;
    params.distinguished_name.push(DnType::CommonName, format!("Farrier CA {}", hex::encode(tag)));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    Ok(params.self_signed(key).map_err(issue_error)?.pem())
}

/// Issues a serving certificate with a fresh key.
///
/// # Errors
/// When CA certificate and key do not parse or do not belong together.
pub fn issue_serving(
    ca_pem: &str,
    ca_key_pem: &str,
    names: &ServingNames,
    now: Time,
) -> Result<Issued, TlsError> {
    let ca_key = KeyPair::from_pem(ca_key_pem).map_err(issue_error)?;
    let issuer = Issuer::from_ca_cert_pem(ca_pem, ca_key).map_err(issue_error)?;
    let key = KeyPair::generate().map_err(issue_error)?;
    let mut params = dated(now, SERVING_LIFE)?;
    params.distinguished_name.push(DnType::CommonName, "farrier");
    params.is_ca = IsCa::ExplicitNoCa;
    params.use_authority_key_identifier_extension = true;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    for name in names.iter() {
        params.subject_alt_names.push(match name {
            ServingName::Dns(dns) => SanType::DnsName(dns.as_str().try_into().map_err(issue_error)?),
            ServingName::Ip(ip) => SanType::IpAddress(*ip),
        });
    }
    let cert = params.signed_by(&key, &issuer).map_err(issue_error)?;
    Ok(Issued { cert_pem: cert.pem(), key_pem: SecretPem(Zeroizing::new(key.serialize_pem())) })
}

fn dated(now: Time, life: Duration) -> Result<CertificateParams, TlsError> {
    let day = |seconds: i64| -> Result<(i32, u8, u8), TlsError> {
        let date =
            jiff::tz::Offset::UTC.to_datetime(jiff::Timestamp::from_second(seconds).map_err(issue_error)?);
        let number = |n: i8| u8::try_from(n).map_err(issue_error);
        Ok((i32::from(date.year()), number(date.month())?, number(date.day())?))
    };
    let mut params = CertificateParams::default();
    let seconds = |d: Duration| i64::try_from(d.as_secs()).unwrap_or(i64::MAX);
    let (year, month, date) = day(now.unix().saturating_sub(seconds(BACKDATE)))?;
    params.not_before = date_time_ymd(year, month, date);
    let (year, month, date) = day((now + life).unix())?;
    params.not_after = date_time_ymd(year, month, date);
    params.distinguished_name = rcgen::DistinguishedName::new();
    Ok(params)
}

/// What matters about a certificate on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Described {
    /// First instant it is valid.
    pub not_before: Time,
    /// Last instant it is valid.
    pub not_after: Time,
    /// Names it answers to.
    pub names: BTreeSet<ServingName>,
    /// Subject, DER.
    pub subject: Vec<u8>,
    /// Issuer, DER.
    pub issuer: Vec<u8>,
    /// Whether it may issue others.
    pub is_ca: bool,
}

/// Reads a certificate.
///
/// # Errors
/// What is wrong with it, in words.
pub fn describe(der: &CertificateDer<'_>) -> Result<Described, String> {
    let (_, cert) = X509Certificate::from_der(der.as_ref()).map_err(|e| format!("not a certificate: {e}"))?;
    let mut names = BTreeSet::new();
    for extension in cert.extensions() {
        if let ParsedExtension::SubjectAlternativeName(san) = extension.parsed_extension() {
            names.extend(san.general_names.iter().filter_map(serving_name));
        }
    }
    Ok(Described {
        not_before: Time::from_unix(cert.validity().not_before.timestamp()),
        not_after: Time::from_unix(cert.validity().not_after.timestamp()),
        names,
        subject: cert.subject().as_raw().to_vec(),
        issuer: cert.issuer().as_raw().to_vec(),
        is_ca: cert.is_ca(),
    })
}

fn serving_name(name: &GeneralName<'_>) -> Option<ServingName> {
    match name {
        GeneralName::DNSName(dns) => dns.parse().ok(),
        GeneralName::IPAddress(bytes) => {
            let ip = match bytes.len() {
                4 => IpAddr::from(<[u8; 4]>::try_from(*bytes).ok()?),
                16 => IpAddr::from(<[u8; 16]>::try_from(*bytes).ok()?),
                _ => return None,
            };
            Some(ServingName::Ip(ip))
        }
        _ => None,
    }
}

/// Whether a serving certificate should be replaced: less than a third of its life is left, or it lacks a name.
pub fn needs_renewal(cert: &Described, names: &ServingNames, now: Time) -> bool {
    let life = cert.not_after.since(cert.not_before);
    cert.not_after.since(now) < life / 3 || !names.covered_by(&cert.names)
}
