//! The time by the pinned server: the `Date` of an answer to a question that carries no secret.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use farrier_shared::contract::cmdline::BootParams;
use reqwest::dns::Resolve;
use reqwest::header::DATE;
use reqwest::redirect;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

use super::Unix;
use super::bounds::{Bounds, Heard, life};
use crate::callback::root_cause;

/// How long the whole question may take.
const WAIT: Duration = Duration::from_secs(10);

/// What a server showed, to be judged again at the time it told.
#[derive(Debug)]
struct Shown {
    chain: Vec<CertificateDer<'static>>,
    name: ServerName<'static>,
    valid_since: Unix,
}

/// Verifies chain, name and signatures against the pinned CA, in full, but at the earliest time at which the chain
/// can be valid instead of by a clock that may be wrong.
#[derive(Debug)]
struct AtItsBeginning {
    pinned: Arc<WebPkiServerVerifier>,
    earliest: Unix,
    shown: Mutex<Option<Shown>>,
}

impl ServerCertVerifier for AtItsBeginning {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let mut valid_since = self.earliest;
        for cert in std::iter::once(end_entity).chain(intermediates) {
            valid_since = valid_since.max(life(cert).map_err(Error::General)?.0);
        }
        let verified =
            self.pinned.verify_server_cert(end_entity, intermediates, name, ocsp, at(valid_since))?;
        let chain =
            std::iter::once(end_entity).chain(intermediates).map(|c| c.clone().into_owned()).collect();
        let shown = Shown { chain, name: name.to_owned(), valid_since };
        *self.shown.lock().unwrap_or_else(PoisonError::into_inner) = Some(shown);
        Ok(verified)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.pinned.verify_tls12_signature(message, cert, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.pinned.verify_tls13_signature(message, cert, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.pinned.supported_verify_schemes()
    }
}

impl AtItsBeginning {
    /// What the server showed, if it is valid at the time it told too.
    fn believe(&self, time: Unix) -> Result<Heard, String> {
        let shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        let shown = shown.as_ref().ok_or("the server showed no certificate")?;
        let (leaf, intermediates) = shown.chain.split_first().ok_or("the server showed no certificate")?;
        let verdict = self.pinned.verify_server_cert(leaf, intermediates, &shown.name, &[], at(time));
        verdict.map_err(|e| format!("the controller is not valid at the time it tells: {e}"))?;
        Ok(Heard { time, valid_since: shown.valid_since })
    }
}

fn at(time: Unix) -> UnixTime {
    UnixTime::since_unix_epoch(Duration::from_secs(time))
}

/// Asks the controller of these parameters for the time. Sends neither token nor anything else of the run.
///
/// # Errors
/// Why it is not known, in words.
pub async fn ask(params: &BootParams, resolver: Arc<dyn Resolve>, bounds: &Bounds) -> Result<Heard, String> {
    let url = params.api.to_url().join("/healthz").map_err(|e| e.to_string())?;
    if url.scheme() != "https" {
        return Err("not asked without TLS".to_owned());
    }
    let mut roots = RootCertStore::empty();
    for cert in CertificateDer::pem_slice_iter(&params.ca_pem) {
        roots.add(cert.map_err(|e| e.to_string())?).map_err(|e| e.to_string())?;
    }
    let provider = Arc::new(ring::default_provider());
    let pinned = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
        .build()
        .map_err(|e| e.to_string())?;
    let verifier = Arc::new(AtItsBeginning { pinned, earliest: bounds.earliest, shown: Mutex::default() });
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| e.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(Arc::clone(&verifier) as Arc<dyn ServerCertVerifier>)
        .with_no_client_auth();
    let http = reqwest::Client::builder()
        .tls_backend_preconfigured(config)
        .dns_resolver(resolver)
        .no_proxy()
        .redirect(redirect::Policy::none())
        .referer(false)
        .timeout(WAIT)
        .build()
        .map_err(|e| root_cause(&e))?;
    // Any answer has a date; a controller that knows no such path is as good.
    let answer = http.get(url).send().await.map_err(|e| root_cause(&e))?;
    let date = answer.headers().get(DATE).and_then(|d| d.to_str().ok()).ok_or("the answer has no date")?;
    verifier.believe(read_date(date).ok_or("the date of the answer cannot be read")?)
}

/// The time of a `Date` header (RFC 9110, section 5.6.7), in the one form servers may send.
fn read_date(text: &str) -> Option<Unix> {
    let time = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text).ok()?;
    Unix::try_from(time.as_second()).ok()
}

#[cfg(test)]
mod tests;
