//! Between which times the true one lies, by what the controller itself put on the command line.

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use super::Unix;

/// When the agent was built, where the build says so: nobody runs it earlier.
const BUILT: Option<&str> = option_env!("SOURCE_DATE_EPOCH");

/// The life of the pinned CA. The controller handed it to this boot, so the CA is valid now, whatever the clock says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The true time is not before this.
    pub earliest: Unix,
    /// The true time is not after this.
    pub latest: Unix,
}

/// A time the pinned server told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heard {
    /// The time.
    pub time: Unix,
    /// Since when the certificates it showed are valid.
    pub valid_since: Unix,
}

impl Bounds {
    /// The bounds by a bundle of CA certificates: from the newest beginning to the last end.
    ///
    /// # Errors
    /// When it holds no certificate that can be read, in words.
    pub fn of(ca_pem: &[u8]) -> Result<Self, String> {
        let mut bounds: Option<Self> = None;
        for cert in CertificateDer::pem_slice_iter(ca_pem) {
            let cert = cert.map_err(|e| e.to_string())?;
            let (begin, end) = life(&cert)?;
            let known = bounds.get_or_insert(Self { earliest: begin, latest: end });
            known.earliest = known.earliest.max(begin);
            known.latest = known.latest.max(end);
        }
        let mut bounds = bounds.ok_or("no certificate in the bundle")?;
        let built = BUILT.and_then(|text| text.parse().ok()).unwrap_or(0);
        bounds.earliest = bounds.earliest.max(built).min(bounds.latest);
        Ok(bounds)
    }

    /// Whether `time` may be the true one.
    pub fn contains(&self, time: Unix) -> bool {
        (self.earliest..=self.latest).contains(&time)
    }

    /// What the clock is to be set to after the pinned server told the time; [`None`] to leave it.
    ///
    /// Forward whenever the clock says that CA or server are not valid yet. Back only when the clock is beyond the
    /// life of the CA, which proves it wrong: a clock that may be right is never turned back to a time at which a
    /// certificate that is over was still good.
    pub fn correct(&self, clock: Unix, heard: Heard) -> Option<Unix> {
        let behind = clock < self.earliest || clock < heard.valid_since;
        let ahead = clock > self.latest;
        let forward = heard.time > clock;
        (self.contains(heard.time) && (behind && forward || ahead)).then_some(heard.time)
    }
}

/// First and last moment a certificate is valid.
///
/// # Errors
/// When it cannot be read, in words.
pub(super) fn life(cert: &CertificateDer<'_>) -> Result<(Unix, Unix), String> {
    let (_, cert) =
        X509Certificate::from_der(cert.as_ref()).map_err(|e| format!("not a certificate: {e}"))?;
    let unix = |time: x509_parser::time::ASN1Time| Unix::try_from(time.timestamp()).unwrap_or(0);
    Ok((unix(cert.validity().not_before), unix(cert.validity().not_after)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds = Bounds { earliest: 1000, latest: 9000 };

    #[test]
    fn the_clock_goes_forward_to_a_valid_server_and_back_only_when_it_is_surely_wrong() {
        let heard = |time| Heard { time, valid_since: 3000 };
        for (why, clock, told, expected) in [
            ("a dead battery", 0, 5000, Some(5000)),
            ("hours behind a fresh certificate", 2999, 5000, Some(5000)),
            ("within everything", 4000, 5000, None),
            ("right", 5000, 5000, None),
            ("ahead, and the certificate may be over", 8000, 5000, None),
            ("beyond the CA", 9001, 5000, Some(5000)),
            ("told a time before the CA", 0, 999, None),
            ("told a time after the CA", 9001, 9001, None),
        ] {
            assert_eq!(BOUNDS.correct(clock, heard(told)), expected, "{why}");
        }
    }

    #[test]
    fn a_bundle_without_certificates_has_no_bounds() {
        assert!(Bounds::of(b"").is_err());
        assert!(Bounds::of(b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n").is_err());
    }
}
