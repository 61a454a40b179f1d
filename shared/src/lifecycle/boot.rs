//! Serving a boot script once: the consume rule of `/boot` (contract section 2).

use std::net::IpAddr;

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use subtle::ConstantTimeEq as _;

use super::credentials::{Credentials, CredentialsRead, Refused};
use super::host_view;
use super::timing::Timings;
use crate::contract::secret::BootNonce;
use crate::contract::time::Time;
use crate::resource::host::BootstrapStatus;
use crate::resource::{HostState, PhysicalHost};

/// How often the consume record is tried before the caller is turned away.
pub const CONSUME_ATTEMPTS: u32 = 3;

/// What to do with one request for a boot script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BootDecision<'a> {
    /// Write this as `status.bootstrap`, compare-and-swap on the version the host was read at; once it is
    /// durable, render with these credentials. On conflict read everything anew and decide again, up to
    /// [`CONSUME_ATTEMPTS`] times; on any other failure answer as for [`Refuse`](Self::Refuse).
    Consume {
        /// The record.
        bootstrap: Box<BootstrapStatus>,
        /// What the script is rendered with.
        credentials: &'a Credentials,
    },
    /// The same client asks again within the window: render, write nothing.
    Again {
        /// What the script is rendered with.
        credentials: &'a Credentials,
    },
    /// Not found, whatever the cause; the cause is for the log alone.
    Refuse(BootRefusal),
}

/// Why no script is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BootRefusal {
    /// The nonce is not the host's present one.
    #[error("{0}")]
    Credentials(Refused),
    /// Fetched already, by another client or too long ago.
    #[error("the boot nonce was consumed by another client or too long ago")]
    Consumed,
    /// The run has failed, or is installed: whatever boots now would write over a disk for nobody.
    #[error("the run is over")]
    RunOver,
}

/// Decides on one request from `client` presenting `nonce`.
pub fn decide_boot<'a>(
    host: &PhysicalHost,
    read: CredentialsRead<'a>,
    nonce: &str,
    client: IpAddr,
    now: Time,
    timings: &Timings,
) -> BootDecision<'a> {
    let credentials = match read.verify_nonce(host, nonce, now) {
        Ok(credentials) => credentials,
        Err(refused) => return BootDecision::Refuse(BootRefusal::Credentials(refused)),
    };
    if host.status.state == HostState::Ready || host_view::run_failed(host) {
        return BootDecision::Refuse(BootRefusal::RunOver);
    }
    let nonce_hash = credentials.nonce.sha256_hex();
    let client = client_hash(&credentials.nonce, client);
    let old = host.status.bootstrap.clone().unwrap_or_default();
    match old.boot_nonce_consumed_at {
        Some(at) if old.boot_nonce_consumed_hash == nonce_hash => {
            let same = same_text(&old.boot_nonce_consumed_client_hash, &client);
            if same && now < at + timings.nonce_retry_window {
                BootDecision::Again { credentials }
            } else {
                BootDecision::Refuse(BootRefusal::Consumed)
            }
        }
        // No record, one of an earlier nonce, or one that does not say of which.
        _ => BootDecision::Consume {
            bootstrap: Box::new(BootstrapStatus {
                boot_nonce_consumed_at: Some(now),
                boot_nonce_consumed_hash: nonce_hash,
                boot_nonce_consumed_client_hash: client,
                ..old
            }),
            credentials,
        },
    }
}

/// Names a client without storing its address: hex HMAC-SHA256 of the canonical address under the nonce's
/// text. An IPv4 address spelt as IPv6 is the same client.
pub fn client_hash(nonce: &BootNonce, client: IpAddr) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(nonce.expose().as_bytes())
        .unwrap_or_else(|_| unreachable!("HMAC takes keys of any length"));
    mac.update(client.to_canonical().to_string().as_bytes());
    hex::encode(mac.finalize().into_bytes())
}

fn same_text(a: &str, b: &str) -> bool {
    a.as_bytes().ct_eq(b.as_bytes()).into()
}
