//! Fetching an image's checksum file: https only, small, quick, and from the one origin that was named.

use farrier_shared::contract::{Digest, WebUrl};
use farrier_shared::lifecycle::digest_url::{FETCH_TIMEOUT, MAX_BODY, MAX_REDIRECTS, parse_checksum_file};
use farrier_shared::resource::Beskar7Machine;
use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder};

use super::Shell;

impl Shell {
    /// Fetches and remembers the outcome for the next pass.
    pub(super) async fn resolve_digest(&self, machine: &Beskar7Machine, url: &WebUrl) {
        let fetched = fetch(Client::builder(), url, &machine.spec.target_image_url).await;
        if let Err(message) = &fetched {
            tracing::info!(machine = %machine.metadata.key(), message, "no digest from the checksum file");
        }
        self.memory.digest_fetched(machine, url.clone(), fetched, &self.ctx.timings);
    }
}

/// The digest the file at `url` gives for `image`, fetched by what `builder` makes. The error holds nothing the
/// server sent.
async fn fetch(builder: ClientBuilder, url: &WebUrl, image: &WebUrl) -> Result<Digest, String> {
    let address = url.to_url();
    if address.scheme() != "https" || !address.username().is_empty() || address.password().is_some() {
        return Err("targetImageDigestURL must be https and hold no user or password".to_owned());
    }
    let at = url.authority();
    let origin = address.origin();
    let client = builder
        .timeout(FETCH_TIMEOUT)
        .tls_version_min(reqwest::tls::Version::TLS_1_2)
        .pool_max_idle_per_host(0)
        .redirect(Policy::custom(move |attempt| {
            if attempt.url().origin() != origin || attempt.previous().len() > MAX_REDIRECTS {
                attempt.stop()
            } else {
                attempt.follow()
            }
        }))
        .build()
        .map_err(|_| "no TLS client can be made; check the system's certificates".to_owned())?;
    let mut response = client
        .get(address)
        .send()
        .await
        .map_err(|e| format!("the checksum file at {at} cannot be fetched: {}", kind(&e)))?;
    let status = response.status().as_u16();
    if status != 200 {
        return Err(format!("the checksum file at {at} cannot be fetched: HTTP {status}"));
    }
    let mut body = Vec::new();
    while let Some(chunk) = response
        .chunk()
        .await
        .map_err(|e| format!("the checksum file at {at} cannot be fetched: {}", kind(&e)))?
    {
        body.extend_from_slice(&chunk);
        if body.len() > MAX_BODY {
            break;
        }
    }
    parse_checksum_file(&body, image).map_err(|error| format!("{error} ({at})"))
}

fn kind(error: &reqwest::Error) -> &'static str {
    if error.is_timeout() {
        "timed out"
    } else if error.is_connect() {
        "no connection, or its certificate is not trusted"
    } else {
        "the answer broke off"
    }
}

#[cfg(test)]
mod tests;
