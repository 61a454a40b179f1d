//! Signing signals, and judging whether a waiting one belongs to the present run.

use sha2::{Digest as _, Sha256};

use super::credentials::{Credentials, CredentialsRead, Refused};
use super::signal::{Signal, SignalKey};
use crate::contract::binding::{Binding, Bound};
use crate::contract::name::HostKey;
use crate::resource::PhysicalHost;

/// What a binding is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Sent by whoever holds the present run's credentials: act on it.
    Bound,
    /// Not: remove it, with no other effect.
    Rejected,
    /// The credentials cannot be read: leave it for the next pass.
    Unverifiable,
}

/// Judges one signal of `host`. The token's expiry is not looked at: the signal was taken while it was good,
/// and a token that was cut since does not undo what was reported.
pub fn verdict(host: &PhysicalHost, credentials: CredentialsRead<'_>, signal: &Signal) -> Verdict {
    let credentials = match credentials.bound(host) {
        Ok(credentials) => credentials,
        Err(Refused::Unreadable) => return Verdict::Unverifiable,
        Err(_) => return Verdict::Rejected,
    };
    let Some(binding) = &signal.binding else { return Verdict::Rejected };
    // A host that accepted a run takes nothing from another one.
    if host.status.run.as_ref().is_some_and(|run| started(host) && *run != credentials.run) {
        return Verdict::Rejected;
    }
    let key = host.metadata.key();
    let digest = report_digest(signal.report.as_deref());
    let bound = bound(signal.key, &key, &host.metadata.uid, credentials, &digest, &signal.value);
    if binding.verify(&credentials.token, &credentials.nonce, &bound) {
        Verdict::Bound
    } else {
        Verdict::Rejected
    }
}

/// Whether the host has accepted its run: from `Inspecting` on.
fn started(host: &PhysicalHost) -> bool {
    use crate::resource::HostState as S;
    matches!(host.status.state, S::Inspecting | S::Deploying | S::Ready)
}

/// A signal for `host`, bound to the run of `credentials`. `report` belongs to
/// [`SignalKey::InspectionResult`] only.
pub fn sign(
    host: &PhysicalHost,
    credentials: &Credentials,
    key: SignalKey,
    value: &str,
    report: Option<String>,
) -> Signal {
    let host_key = host.metadata.key();
    let digest = report_digest(report.as_deref());
    let bound = bound(key, &host_key, &host.metadata.uid, credentials, &digest, value);
    let binding = Binding::sign(&credentials.token, &credentials.nonce, &bound);
    Signal { key, value: value.to_owned(), binding: Some(binding), report }
}

fn report_digest(report: Option<&str>) -> String {
    report.map(|text| hex::encode(Sha256::digest(text.as_bytes()))).unwrap_or_default()
}

fn bound<'a>(
    key: SignalKey,
    host: &'a HostKey,
    host_uid: &'a str,
    credentials: &'a Credentials,
    digest: &'a str,
    value: &'a str,
) -> Bound<'a> {
    Bound { key: key.annotation(), host, host_uid, consumer_uid: &credentials.consumer_uid, digest, value }
}
