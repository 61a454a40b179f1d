//! What a caller can tell two answers apart by.

use std::net::Ipv4Addr;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use reqwest::Client;

/// An answer without its date.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) status: u16,
    headers: Vec<(String, String)>,
    pub(super) body: String,
}

/// Checks that all of these are the same answer, with this status.
pub(super) fn alike(refusals: &[(&str, Answer)], status: u16) -> Result<()> {
    let (_, first) = refusals.first().context("there are refusals")?;
    ensure!(first.status == status, "refused with {}", first.status);
    for (what, answer) in refusals {
        ensure!(answer == first, "{what} is answered {answer:?}, others {first:?}");
    }
    Ok(())
}

/// Asks from this address.
pub(super) async fn get(from: Ipv4Addr, url: &str) -> Result<Answer> {
    let client = Client::builder().local_address(std::net::IpAddr::from(from)).build()?;
    answer(client.get(url)).await
}

pub(super) async fn answer(request: reqwest::RequestBuilder) -> Result<Answer> {
    let response = request.timeout(Duration::from_secs(20)).send().await?;
    let status = response.status().as_u16();
    let mut headers: Vec<_> = response
        .headers()
        .iter()
        .filter(|(name, _)| *name != "date")
        .map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
        .collect();
    headers.sort();
    Ok(Answer { status, headers, body: response.text().await? })
}

/// A client that trusts the controller's own CA and no other.
pub(super) fn https(dir: &Path) -> Result<Client> {
    let pem = std::fs::read(dir.join("data/tls/ca.crt")).context("read the controller's CA")?;
    let ca = reqwest::Certificate::from_pem(&pem)?;
    Ok(Client::builder().tls_certs_only([ca]).build()?)
}
