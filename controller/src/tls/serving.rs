//! What the HTTPS listener serves: made or read at start, renewed in time, reloaded when the files change.

use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use farrier_shared::contract::Time;
use rustls::ServerConfig;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls_pki_types::PrivateKeyDer;
use rustls_pki_types::pem::PemObject as _;
use sha2::{Digest as _, Sha256};

use super::authority::{self, Described};
use super::files::{self, TlsError, TlsFiles};
use super::names::ServingNames;

/// How long before its end a certificate is complained of. Those made here are renewed long before.
pub const ENDS_SOON: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// The serving certificate in use; shared with every TLS connection.
#[derive(Debug)]
pub struct ServingIdentity {
    files: TlsFiles,
    names: ServingNames,
    current: RwLock<Current>,
}

#[derive(Debug)]
struct Current {
    key: Arc<CertifiedKey>,
    fingerprint: [u8; 32],
}

/// What a look at the files led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Upkeep {
    /// Nothing changed.
    Unchanged,
    /// Other files are there now and are served from here on.
    Reloaded,
    /// The certificate was about to end or lacked a name; a new one was issued and is served.
    Renewed,
}

impl ServingIdentity {
    /// Makes what is missing, then loads it.
    ///
    /// # Errors
    /// When the folder cannot be used, or holds files that do not fit together.
    pub fn open(files: TlsFiles, names: ServingNames, now: Time) -> Result<Arc<Self>, TlsError> {
        files.create_dir()?;
        ensure(&files, &names, now)?;
        files.ca_bundle()?;
        let current = RwLock::new(load(&files)?);
        Ok(Arc::new(Self { files, names, current }))
    }

    /// Renews and reloads as needed; called every few seconds and on SIGHUP. On an error the old certificate
    /// stays in use.
    ///
    /// # Errors
    /// When files changed into something unusable.
    pub fn upkeep(&self, now: Time) -> Result<Upkeep, TlsError> {
        let renewed = ensure(&self.files, &self.names, now)?;
        let fresh = load(&self.files)?;
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        if fresh.fingerprint == current.fingerprint {
            return Ok(Upkeep::Unchanged);
        }
        *current = fresh;
        Ok(if renewed { Upkeep::Renewed } else { Upkeep::Reloaded })
    }

    /// The certificate that ends first within [`ENDS_SOON`], or has ended: every run fails from then on.
    ///
    /// # Errors
    /// When the files cannot be read.
    pub fn ends_soon(&self, now: Time) -> Result<Option<(PathBuf, Time)>, TlsError> {
        let mut ends = Vec::new();
        for path in [self.files.ca_cert(), self.files.cert()] {
            if let Some(pem) = files::read(&path)? {
                ends.push((first(&path, &pem)?.not_after, path));
            }
        }
        let earliest = ends.into_iter().min().filter(|(end, _)| end.since(now) < ENDS_SOON);
        Ok(earliest.map(|(end, path)| (path, end)))
    }

    /// The PEM bundle agents must trust, as it is on disk now.
    ///
    /// # Errors
    /// See [`TlsFiles::ca_bundle`].
    pub fn ca_bundle(&self) -> Result<Vec<u8>, TlsError> {
        self.files.ca_bundle()
    }

    /// TLS 1.2 and 1.3, HTTP/1.1 only, this identity whatever name the client asks for (or none).
    ///
    /// # Errors
    /// When the TLS library refuses its own defaults.
    pub fn server_config(self: &Arc<Self>) -> Result<Arc<ServerConfig>, TlsError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])
            .map_err(|e| TlsError::Issue { problem: e.to_string() })?
            .with_no_client_auth()
            .with_cert_resolver(Arc::<Self>::clone(self));
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}

impl ResolvesServerCert for ServingIdentity {
    /// Machines boot by address as often as by name, so the name asked for, if any, is not looked at.
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner).key))
    }
}

/// Makes or renews what this installation may make. Returns whether anything was issued.
fn ensure(files: &TlsFiles, names: &ServingNames, now: Time) -> Result<bool, TlsError> {
    let (cert, key) = (files::read(&files.cert())?, files::read(&files.key())?);
    let ca_cert = files::read(&files.ca_cert())?;
    let ca_key = files::read(&files.ca_key())?.map(zeroize::Zeroizing::new);
    let incomplete = |problem| Err(TlsError::Incomplete { dir: files.dir().to_owned(), problem });
    let (ca_cert, ca_key) = match (ca_cert, ca_key, cert.is_some() || key.is_some()) {
        (Some(ca_cert), Some(ca_key), _) => (ca_cert, ca_key),
        // The operator's own certificate: served as it is.
        (_, None, true) => {
            return match (cert, key) {
                (Some(_), Some(_)) => Ok(false),
                _ => incomplete(
                    "tls.crt and tls.key must both be there; add the missing one or remove the other",
                ),
            };
        }
        (Some(_), None, false) => {
            return incomplete(
                "ca.crt is there without ca.key and tls.crt; add tls.crt and tls.key, or remove ca.crt",
            );
        }
        // A first start that was cut off between the two; nobody has trusted this key yet.
        (None, Some(ca_key), false) if let Some(ca) = authority::authority_of(&ca_key, now) => {
            files::write(&files.ca_cert(), ca.as_bytes())?;
            (ca.into_bytes(), ca_key)
        }
        (None, Some(_), _) => {
            return incomplete("ca.key is there without ca.crt; restore ca.crt or remove ca.key");
        }
        (None, None, false) => {
            let ca = authority::new_authority(now)?;
            files::write(&files.ca_key(), ca.key_pem.expose().as_bytes())?;
            files::write(&files.ca_cert(), ca.cert_pem.as_bytes())?;
            (ca.cert_pem.into_bytes(), zeroize::Zeroizing::new(ca.key_pem.expose().as_bytes().to_vec()))
        }
    };
    if let (Some(cert), Some(_)) = (&cert, &key) {
        let serving = first(&files.cert(), cert)?;
        let authority = first(&files.ca_cert(), &ca_cert)?;
        let ours = serving.issuer == authority.subject;
        if !ours || !authority::needs_renewal(&serving, names, now) {
            return Ok(false);
        }
    }
    let text = |path: std::path::PathBuf, bytes: &[u8]| {
        String::from_utf8(bytes.to_vec())
            .map(zeroize::Zeroizing::new)
            .map_err(|_| TlsError::Unusable { path, problem: "not text".to_owned() })
    };
    let ca_cert = text(files.ca_cert(), &ca_cert)?;
    let ca_key = text(files.ca_key(), &ca_key)?;
    let issued = authority::issue_serving(&ca_cert, &ca_key, names, now)?;
    files::write(&files.key(), issued.key_pem.expose().as_bytes())?;
    files::write(&files.cert(), issued.cert_pem.as_bytes())?;
    Ok(true)
}

fn first(path: &std::path::Path, pem: &[u8]) -> Result<Described, TlsError> {
    let certs = files::certificates(path, pem)?;
    let unusable = |problem| TlsError::Unusable { path: path.to_owned(), problem };
    let leaf = certs.first().ok_or_else(|| unusable("no certificate in it".to_owned()))?;
    authority::describe(leaf).map_err(unusable)
}

fn load(files: &TlsFiles) -> Result<Current, TlsError> {
    let missing =
        |path: std::path::PathBuf| TlsError::Unusable { path, problem: "absent or empty".to_owned() };
    let cert_pem = files::read(&files.cert())?.ok_or_else(|| missing(files.cert()))?;
    let key_pem = zeroize::Zeroizing::new(files::read(&files.key())?.ok_or_else(|| missing(files.key()))?);
    let certs = files::certificates(&files.cert(), &cert_pem)?;
    // The PEM error is not repeated: it could quote the key.
    let key = PrivateKeyDer::from_pem_slice(&key_pem)
        .map_err(|_| TlsError::Unusable { path: files.key(), problem: "no private key in it".to_owned() })?;
    let provider = rustls::crypto::ring::default_provider();
    let key = CertifiedKey::from_der(certs, key, &provider).map_err(|e| TlsError::Unusable {
        path: files.key(),
        problem: format!("does not go with {}: {e}", files.cert().display()),
    })?;
    let fingerprint =
        Sha256::new().chain_update(&cert_pem).chain_update([0]).chain_update(&*key_pem).finalize();
    Ok(Current { key: Arc::new(key), fingerprint: fingerprint.into() })
}

#[cfg(test)]
mod tests;
