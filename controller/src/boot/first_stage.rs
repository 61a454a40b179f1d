//! `GET /ipxe/{mac}`: the script firmware starts with, by the address it boots from.
//!
//! A host whose boot is due is sent on to its own script. Any other waits a while, since hosts are often
//! switched on before they are claimed, and then leaves for its disk. Never an error and never a dead end:
//! firmware that is refused here would hang at a prompt nobody looks at.

use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};

use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{ConnectInfo, Path, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use farrier_shared::contract::{MacAddress, WebUrl, paths};
use farrier_shared::lifecycle::boot::{BootDecision, decide_boot};
use farrier_shared::lifecycle::credentials::CredentialsRead;
use farrier_shared::resource::PhysicalHost;

use super::Boot;
use super::script::{FirmwareQuery, ipxe, too_many};
use crate::store::{Scope, Term};

/// Seconds between two questions of a waiting host.
const WAIT_SECONDS: u32 = 10;
/// How often a waiting host asks before it leaves for its disk: five minutes.
const MAX_ROUNDS: u32 = 30;

/// Owners of an address that are read. A few may have reported it, one may be said to have it.
const OWNERS: usize = 64;

/// What the firmware says, and which round of waiting this is.
#[derive(Debug, Default, serde::Deserialize)]
pub(super) struct FirstStageQuery {
    platform: Option<String>,
    round: Option<u32>,
    /// Set by our own script: the answer is the boot script itself.
    #[serde(default)]
    boot: Option<u8>,
}

/// Serves the script.
pub(super) async fn serve(
    State((boot, reached_at)): State<(Boot, WebUrl)>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    path: Result<Path<String>, PathRejection>,
    query: Result<Query<FirstStageQuery>, QueryRejection>,
    headers: HeaderMap,
) -> Response {
    let client = boot.proxies.client(peer, &headers);
    if !boot.rate.admit(client, boot.clock.monotonic()) {
        return too_many();
    }
    let query = query.map(|Query(query)| query).unwrap_or_default();
    let efi = FirmwareQuery { mac: None, platform: query.platform.clone() }.is_efi();
    let base = reached_at.as_str().trim_end_matches('/');
    let Some(mac) = path.ok().and_then(|Path(text)| parse_mac(&text)) else {
        tracing::info!(%client, "first stage: not a MAC address");
        return ipxe(to_disk("this is not a MAC address, expected /ipxe/aa:bb:cc:dd:ee:ff"));
    };
    match boot.due(mac, client).await {
        Ok(Due::Boot(path)) => {
            tracing::info!(%client, %mac, "first stage: boot is due");
            let platform = if efi { "&platform=efi" } else { "" };
            match query.boot {
                Some(_) => sent_on(format!("{base}{path}?mac={mac}{platform}")),
                None => ipxe(to_boot(base, mac, platform)),
            }
        }
        Ok(Due::Wait(why)) => {
            tracing::debug!(%client, %mac, why, "first stage: nothing to boot yet");
            ipxe(to_wait(base, mac, efi, query.round.unwrap_or(0), why))
        }
        Ok(Due::Disk(why)) => ipxe(to_disk(why)),
        Err(error) => {
            tracing::error!(%client, %mac, %error, "first stage");
            ipxe(to_wait(base, mac, efi, query.round.unwrap_or(0), "the controller has a fault"))
        }
    }
}

/// Either separator, either case.
fn parse_mac(text: &str) -> Option<MacAddress> {
    text.replace('-', ":").parse().ok()
}

/// What a host should do now.
#[derive(Debug, PartialEq, Eq)]
enum Due {
    /// Fetch this path: it holds the nonce.
    Boot(String),
    /// Ask again later.
    Wait(&'static str),
    /// Leave for the disk.
    Disk(&'static str),
}

impl Boot {
    async fn due(&self, mac: MacAddress, client: IpAddr) -> Result<Due, crate::store::StoreError> {
        let owners: Vec<PhysicalHost> =
            self.store.find(Term::BootsFrom(mac), Scope::Everywhere, OWNERS).await?;
        // What the operator says counts before what machines reported: a card may have moved, a report may lie.
        let declared: Vec<_> = owners.iter().filter(|h| h.spec.boot_mac_addresses.contains(&mac)).collect();
        let host = match (declared.as_slice(), owners.as_slice()) {
            (_, []) => return Ok(Due::Wait("no host has this MAC address")),
            ([host], _) => *host,
            ([], [host]) => host,
            // Guessing could install over the wrong machine.
            _ => return Ok(Due::Wait("several hosts claim this MAC address")),
        };
        if host.status.state == farrier_shared::resource::HostState::Ready {
            return Ok(Due::Disk("the host is installed"));
        }
        let key = host.metadata.key();
        let Some(read) = self.store.credentials(&key).await? else {
            return Ok(Due::Wait("no boot is due"));
        };
        let read = CredentialsRead::Present(&read.value);
        // The nonce is the host's own: the same rule as /boot says whether it would be served to this client.
        let nonce = match read {
            CredentialsRead::Present(c) => c.nonce.clone(),
            CredentialsRead::Absent | CredentialsRead::Unreadable => return Ok(Due::Wait("no boot is due")),
        };
        Ok(match decide_boot(host, read, nonce.expose(), client, self.clock.now(), &self.timings) {
            BootDecision::Consume { .. } | BootDecision::Again { .. } => Due::Boot(paths::boot(&key, &nonce)),
            BootDecision::Refuse(_) => Due::Wait("no boot is due"),
        })
    }
}

/// Plain 302, which every iPXE knows.
fn sent_on(url: String) -> Response {
    (StatusCode::FOUND, [(header::LOCATION, url), (header::CACHE_CONTROL, "no-store".to_owned())])
        .into_response()
}

/// Goes to the boot script by a redirect: firmware shows the URLs it is told to fetch on its console, which a
/// BMC may record, but not those it is sent on to, and the boot script's holds the nonce.
///
/// `--replace` ends this script when the next begins, so that waiting firmware does not pile one on the other.
fn to_boot(base: &str, mac: MacAddress, platform: &str) -> String {
    format!(
        "#!ipxe\n\
         chain --replace --autofree {base}/ipxe/{mac}?boot=1{platform} || \n\
         echo farrier: the boot script could not be fetched, asking again in {WAIT_SECONDS} s\n\
         sleep {WAIT_SECONDS}\n\
         chain --replace --autofree {base}/ipxe/{mac}?round=1{platform} || \n\
         echo farrier: the controller did not answer, leaving for the next boot device\n\
         exit\n"
    )
}

fn to_wait(base: &str, mac: MacAddress, efi: bool, round: u32, why: &str) -> String {
    if round >= MAX_ROUNDS {
        return to_disk(why);
    }
    let platform = if efi { "&platform=efi" } else { "" };
    let next = round + 1;
    let mut script =
        format!("#!ipxe\necho farrier: {why}, asking again in {WAIT_SECONDS} s ({next} of {MAX_ROUNDS})\n");
    // Writing to a String cannot fail.
    let _ = write!(
        script,
        "sleep {WAIT_SECONDS}\n\
         chain --replace --autofree {base}/ipxe/{mac}?round={next}{platform} || \n\
         echo farrier: the controller did not answer, leaving for the next boot device\n\
         exit\n"
    );
    script
}

fn to_disk(why: &str) -> String {
    format!("#!ipxe\necho farrier: {why}, leaving for the next boot device\nexit\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mac_is_read_with_either_separator_in_either_case() {
        let expected: MacAddress = "52:54:00:ab:cd:ef".parse().unwrap();
        for text in ["52:54:00:ab:cd:ef", "52-54-00-AB-CD-EF", "52:54:00:AB:cd:EF"] {
            assert_eq!(parse_mac(text), Some(expected), "{text}");
        }
        for text in ["", "52:54:00:ab:cd", "net0", "..", "52:54:00:ab:cd:ef:00"] {
            assert_eq!(parse_mac(text), None, "{text}");
        }
    }

    #[test]
    fn every_script_ends_by_leaving_firmware_free_to_go_on() {
        let mac = "52:54:00:ab:cd:ef".parse().unwrap();
        let scripts = [
            to_boot("https://c", mac, "&platform=efi"),
            to_wait("https://c", mac, false, 0, "no boot is due"),
            to_wait("https://c", mac, true, MAX_ROUNDS, "no boot is due"),
            to_disk("installed"),
        ];
        for script in scripts {
            assert!(script.starts_with("#!ipxe\n") && script.ends_with("exit\n"), "{script}");
            for line in script.lines().filter(|l| l.starts_with("chain")) {
                assert!(line.contains("||"), "{line}");
            }
        }
        assert!(!to_wait("https://c", mac, false, MAX_ROUNDS, "x").contains("chain"));
    }
}
