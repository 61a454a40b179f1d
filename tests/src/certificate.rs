//! Certificates for the lab's own servers.

use anyhow::{Context as _, Result};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, ExtendedKeyUsagePurpose,
    IsCa, KeyPair, KeyUsagePurpose,
};

/// A certificate authority that lives as long as the test.
#[derive(Debug)]
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    pem: String,
}

/// A serving certificate and its key.
#[derive(Debug)]
pub struct Leaf {
    /// The certificate, PEM.
    pub certificate_pem: String,
    /// The key, PEM.
    pub key_pem: String,
}

impl Authority {
    /// A new authority.
    ///
    /// # Errors
    /// When no key can be made.
    pub fn new(name: &str) -> Result<Self> {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate()?).context("make a CA")?;
        let pem = issuer.pem();
        Ok(Self { issuer, pem })
    }

    /// Its certificate.
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// A serving certificate for one name or address.
    ///
    /// # Errors
    /// When the name is neither.
    pub fn issue(&self, name: &str) -> Result<Leaf> {
        let mut params = CertificateParams::new(vec![name.to_owned()])?;
        params.is_ca = IsCa::ExplicitNoCa;
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer).context("sign a certificate")?;
        Ok(Leaf { certificate_pem: certificate.pem(), key_pem: key.serialize_pem() })
    }
}
