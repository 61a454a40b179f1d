//! When credentials are kept and when they are minted anew: once for each boot.

use zeroize::{Zeroize, ZeroizeOnDrop};

use super::credentials::{Credentials, CredentialsRead, Refused};
use super::host_view;
use super::signal::{Signal, SignalKey};
use super::timing::Timings;
use super::verdict::{Verdict, verdict};
use crate::contract::secret::{BootNonce, Token};
use crate::contract::time::Time;
use crate::resource::{Beskar7Machine, PhysicalHost};

/// Random bytes for one mint; fresh ones for each attempt.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct Entropy {
    /// For the token.
    pub token: [u8; 32],
    /// For the nonce.
    pub nonce: [u8; 32],
    /// For the run's id.
    pub run: [u8; 8],
}

impl std::fmt::Debug for Entropy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Entropy(redacted)")
    }
}

/// What to do with a host's credentials before it is booted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ensured {
    /// They are good as they are.
    Keep(Credentials),
    /// These are to be written, in one compare-and-swap against the version that was read.
    Write(Credentials),
}

impl Ensured {
    /// The credentials in force once this is carried out.
    pub fn credentials(&self) -> &Credentials {
        match self {
            Self::Keep(c) | Self::Write(c) => c,
        }
    }
}

/// Why credentials cannot be had now; the pass fails and is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EnsureError {
    /// The store did not answer.
    #[error("the host's credentials cannot be read")]
    Unreadable,
    /// A record of another host object is in the way; it is never adopted or overwritten.
    #[error("a credentials record of another host object is in the way; remove it")]
    Conflict,
    /// The host object has no identity yet.
    #[error("the host object has no uid yet")]
    NoUid,
}

/// A run that may be running on a host.
#[derive(Clone, Copy, Debug)]
pub struct Running<'a> {
    /// The run the host was powered for under the present claim.
    pub run: &'a str,
    /// What waits to be taken by the host.
    pub signals: &'a [Signal],
}

/// Decides on the credentials of `host` for a boot by `machine`.
///
/// `running` is the run this host was powered for under the present claim and that may still be running. Its
/// agent knows this token and what it reported is bound to this nonce, so neither is touched while the token
/// is good. In every other case a nonce that cannot be used again means a new boot, hence a new run with a new
/// token, so that nothing an earlier boot still sends can be taken for this one's.
///
/// # Errors
/// [`EnsureError`].
pub fn ensure(
    host: &PhysicalHost,
    machine: &Beskar7Machine,
    read: CredentialsRead<'_>,
    running: Option<Running<'_>>,
    entropy: &Entropy,
    now: Time,
    timings: &Timings,
) -> Result<Ensured, EnsureError> {
    if host.metadata.uid.is_empty() {
        return Err(EnsureError::NoUid);
    }
    let old = match read.owned_by(host) {
        Ok(old) => Some(old),
        Err(Refused::Unreadable) => return Err(EnsureError::Unreadable),
        Err(Refused::Foreign) => return Err(EnsureError::Conflict),
        Err(_) => None,
    };
    let ours = old.filter(|c| {
        c.consumer == machine.metadata.name.as_str()
            && !c.consumer_uid.is_empty()
            && c.consumer_uid == machine.metadata.uid
    });
    let Some(old) = ours else { return Ok(Ensured::Write(fresh(host, machine, entropy, now, timings))) };
    let running = running.filter(|r| r.run == old.run);
    let taken = host_view::report_in(&host.status) && host.status.run.as_ref() == Some(&old.run);
    // Acknowledged and waiting to be taken is as good: its agent does not send it again.
    let waits = |signal: &Signal| {
        signal.key == SignalKey::InspectionResult && verdict(host, read, signal) == Verdict::Bound
    };
    let reported = taken || running.is_some_and(|r| r.signals.iter().any(waits));
    let running = running.is_some();
    // Once it has reported, all that is left to the agent is to install and say so.
    let token_lasts = if running && reported {
        now < old.token_expires_at
    } else {
        old.token_expires_at > now + timings.token_must_last()
    };
    let nonce_usable = now < old.nonce_expires_at && !maybe_consumed(host, old);
    // Minted by a clock that ran ahead they would end who knows when.
    let dated = old.token_issued_at <= now;
    let keep = token_lasts && (nonce_usable && dated || running);
    Ok(if keep {
        Ensured::Keep(old.clone())
    } else {
        Ensured::Write(fresh(host, machine, entropy, now, timings))
    })
}

fn fresh(
    host: &PhysicalHost,
    machine: &Beskar7Machine,
    entropy: &Entropy,
    now: Time,
    timings: &Timings,
) -> Credentials {
    Credentials {
        host_uid: host.metadata.uid.clone(),
        consumer: machine.metadata.name.as_str().to_owned(),
        consumer_uid: machine.metadata.uid.clone(),
        run: hex::encode(entropy.run),
        token: Token::from_random(entropy.token),
        token_issued_at: now,
        token_expires_at: now + timings.token_lifetime(),
        nonce: BootNonce::from_random(entropy.nonce),
        nonce_expires_at: now + timings.nonce_lifetime(),
    }
}

/// Whether the nonce was fetched, or a record that does not say which nonce it means might mean this one.
fn maybe_consumed(host: &PhysicalHost, credentials: &Credentials) -> bool {
    host.status.bootstrap.as_ref().is_some_and(|record| {
        let unattributed =
            record.boot_nonce_consumed_at.is_some() && record.boot_nonce_consumed_hash.is_empty();
        unattributed || record.boot_nonce_consumed_hash == credentials.nonce.sha256_hex()
    })
}
