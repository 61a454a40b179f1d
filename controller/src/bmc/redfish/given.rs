//! TLS by the certificates an operator gave: issued by one of them, or one of them itself.
//!
//! BMCs leave the factory with certificates that no verification takes: self-signed and marked as a CA's, without the
//! names they are reached by, often expired. Whoever gives that very certificate has said whom to trust, so it is
//! compared byte for byte, and then neither its names nor its dates are looked at: it is trusted until it is taken out of
//! the Secret. That the other side has its key is proven by the handshake as ever.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

use super::sessions::Sessions;

/// Why certificates cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("not certificates in PEM")]
pub(super) struct Unusable;

#[derive(Debug)]
struct Given {
    certificates: Vec<CertificateDer<'static>>,
    /// Verifies what they issued, if they can issue.
    issued: Option<Arc<WebPkiServerVerifier>>,
    provider: Arc<CryptoProvider>,
}

/// A configuration that trusts the certificates in `pem`.
pub(super) fn config(pem: &[u8]) -> Result<ClientConfig, Unusable> {
    let provider = Arc::new(ring::default_provider());
    let certificates: Vec<_> =
        CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>().map_err(|_| Unusable)?;
    if certificates.is_empty() {
        return Err(Unusable);
    }
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(certificates.iter().cloned());
    let issued = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
    let given = Given { certificates, issued: issued.build().ok(), provider: Arc::clone(&provider) };
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|_| Unusable)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(given))
        .with_no_client_auth();
    config.resumption = Resumption::store(Arc::new(Sessions::default()));
    Ok(config)
}

impl ServerCertVerifier for Given {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if self.certificates.iter().any(|given| given == end_entity) {
            return Ok(ServerCertVerified::assertion());
        }
        match &self.issued {
            Some(issued) => {
                issued.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
            }
            None => Err(CertificateError::UnknownIssuer.into()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
