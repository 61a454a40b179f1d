//! Between which times the true one lies, by what the controller itself put on the command line.

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use super::Unix;

/// The life of the pinned CA, as far as the agent can see it. The controller handed it to this boot, so the CA is valid now, whatever the clock says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The true time is not before this.
    pub earliest: Unix,
    /// The true time is not after this.
    pub latest: Unix,
    /// When the controller ordered this run, by its own clock; [`None`] where it does not say (`farrier.time`).
    pub ordered: Option<Unix>,
}

/// How long after its order a run begins at most, by far: the boot nonce lives for minutes.
const DAY: Unix = 24 * 60 * 60;

/// A time the pinned server told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heard {
    /// The time.
    pub time: Unix,
    /// Since when the certificates it showed are valid.
    pub valid_since: Unix,
}

impl Bounds {
    /// The bounds by a bundle of CA certificates, of which one at least is valid now: from the first beginning to the
    /// last end. A bundle may hold the next CA as well, which begins only later. Nor is it earlier than `built`.
    ///
    /// # Errors
    /// When it holds no certificate that can be read, in words.
    pub fn of(ca_pem: &[u8], built: Unix) -> Result<Self, String> {
        let mut bounds: Option<Self> = None;
        for cert in CertificateDer::pem_slice_iter(ca_pem) {
            let cert = cert.map_err(|e| e.to_string())?;
            let (begin, end) = life(&cert)?;
            let known = bounds.get_or_insert(Self { earliest: begin, latest: end, ordered: None });
            known.earliest = known.earliest.min(begin);
            known.latest = known.latest.max(end);
        }
        let mut bounds = bounds.ok_or("no certificate in the bundle")?;
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
    /// life of the CA, or more than a day past the order of this run, which proves it wrong: a clock that may be right is
    /// never turned back to a time at which a certificate that is over was still good. The order came with the CA, by the
    /// same way, and counts for as much; so the time to go back to must be near it.
    pub fn correct(&self, clock: Unix, heard: Heard) -> Option<Unix> {
        let behind = clock < self.earliest || clock < heard.valid_since;
        let forward = heard.time > clock;
        let past_its_order =
            self.ordered.is_some_and(|at| clock > at.saturating_add(DAY) && heard.time.abs_diff(at) <= DAY);
        let ahead = clock > self.latest || past_its_order;
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

    const BOUNDS: Bounds = Bounds { earliest: 1000, latest: 9000, ordered: None };

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
    fn a_clock_days_past_the_order_of_the_run_is_turned_back_to_a_time_near_it() {
        let ordered = 100 * DAY;
        let bounds = Bounds { earliest: 0, latest: 3652 * DAY, ordered: Some(ordered) };
        let heard = |time| Heard { time, valid_since: 90 * DAY };
        for (why, clock, told, expected) in [
            ("years ahead, within the life of the CA", ordered + 700 * DAY, ordered + 60, Some(ordered + 60)),
            ("a boot that took long", ordered + DAY, ordered + 60, None),
            ("a certificate of long ago", ordered + 700 * DAY, ordered - 2 * DAY, None),
            ("a dead battery", 0, ordered + 60, Some(ordered + 60)),
        ] {
            assert_eq!(bounds.correct(clock, heard(told)), expected, "{why}");
        }
    }

    /// The certificate of a CA that lives for these years.
    fn authority(years: (i32, i32)) -> String {
        let mut params = rcgen::CertificateParams::default();
        params.not_before = rcgen::date_time_ymd(years.0, 1, 1);
        params.not_after = rcgen::date_time_ymd(years.1, 1, 1);
        params.self_signed(&rcgen::KeyPair::generate().unwrap()).unwrap().pem()
    }

    #[test]
    fn a_bundle_is_bounded_by_all_its_certificates_and_by_the_build() {
        const Y2020: Unix = 1_577_836_800;
        const Y2030: Unix = 1_893_456_000;
        const Y2040: Unix = 2_208_988_800;
        let (one, next) = (authority((2020, 2030)), authority((2030, 2040)));
        let both = [one.as_str(), next.as_str()].concat();
        for (why, pem, built, expected) in [
            ("one CA", &one, 0, (Y2020, Y2030)),
            ("one CA and a later build", &one, Y2030 - 1, (Y2030 - 1, Y2030)),
            ("the next CA in it as well", &both, Y2020 + 5, (Y2020 + 5, Y2040)),
            ("a build after the end", &one, Y2040, (Y2030, Y2030)),
        ] {
            let bounds = Bounds::of(pem.as_bytes(), built).unwrap();
            assert_eq!((bounds.earliest, bounds.latest), expected, "{why}");
        }
    }

    #[test]
    fn a_bundle_without_certificates_has_no_bounds() {
        assert!(Bounds::of(b"", 0).is_err());
        assert!(Bounds::of(b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", 0).is_err());
    }
}
