//! The flags of `farrier serve`.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use farrier_shared::contract::WebUrl;
use farrier_shared::contract::web_url::WebUrlError;
use farrier_shared::lifecycle::Timings;
use zeroize::Zeroizing;

use crate::admin::Info;
use crate::boot::TrustedProxies;
use crate::tls::names::ServingName;

/// How log lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// Everything the controller is told at its start.
#[derive(Clone, Debug, Args)]
pub struct Settings {
    /// Where the database, keys and logs are kept
    #[arg(long, env = "FARRIER_DATA_DIR", default_value = "/var/lib/farrier")]
    pub data_dir: PathBuf,
    /// Address of the HTTPS listener for agents and boot scripts
    #[arg(long, default_value = "0.0.0.0:8082")]
    pub listen: SocketAddr,
    /// Address of the plain HTTP listener for images
    #[arg(long, default_value = "0.0.0.0:8080")]
    pub http_listen: SocketAddr,
    /// Base URL of the HTTPS listener as servers reach it, such as `https://boot.example.org:8082`
    #[arg(long, value_parser = https_url)]
    pub url_base: WebUrl,
    /// Base URL of the HTTP listener as servers reach it [default: the host of URL_BASE, the port of HTTP_LISTEN]
    #[arg(long, value_parser = http_url)]
    pub http_url_base: Option<WebUrl>,
    /// Also serve /ipxe and /boot over plain HTTP, for firmware that cannot do HTTPS
    ///
    /// The script carries the run's token in clear: only for a network you trust.
    #[arg(long)]
    pub boot_http: bool,
    /// Folder served under /images/ [default: DATA_DIR/images]
    #[arg(long)]
    pub images_dir: Option<PathBuf>,
    /// Where vmlinuz and initrd.img of the inspection image are [default: HTTP_URL_BASE/images/inspection]
    #[arg(long)]
    pub inspection_image_url: Option<WebUrl>,
    /// Also serve the admin API on this loopback address, with the token in DATA_DIR/admin.token
    #[arg(long, value_parser = loopback)]
    pub admin_listen: Option<SocketAddr>,
    /// Further names or addresses of the serving certificate, comma separated
    #[arg(long, value_delimiter = ',')]
    pub tls_san: Vec<ServingName>,
    /// Proxies whose X-Forwarded-For is believed: addresses or networks, comma separated
    #[arg(long, default_value = "", hide_default_value = true)]
    pub trusted_proxies: TrustedProxies,
    /// Connections one address may have open at a time; trusted proxies and this machine itself are free
    #[arg(long, default_value_t = 128, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub connections_per_address: u32,
    /// From boot to the inspection report; raise it for servers whose firmware takes longer
    #[arg(long, default_value = "10m", value_parser = duration)]
    pub inspection_timeout: Duration,
    /// From the report to the installed system, for an agent that tells no progress
    #[arg(long, default_value = "20m", value_parser = duration)]
    pub deployment_timeout: Duration,
    /// How long a deployment that tells progress may stand still
    #[arg(long, default_value = "5m", value_parser = duration)]
    pub stall_timeout: Duration,
    /// The longest any deployment may take, whatever progress it tells
    #[arg(long, default_value = "2h", value_parser = duration)]
    pub deployment_cap: Duration,
    /// Hosts and machines looked after at the same time
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub max_concurrent_reconciles: u32,
    /// Proxy for all requests to BMCs; proxies of the environment are never used
    #[arg(long, env = "FARRIER_BMC_PROXY", hide_env_values = true, value_name = "URL")]
    pub bmc_proxy: Option<ProxyText>,
    /// Render boot scripts byte for byte as the Beskar7 contract does, without Farrier's own parameters
    #[arg(long)]
    pub reference_boot: bool,
    /// How log lines look
    #[arg(long, value_enum, default_value_t)]
    pub log_format: LogFormat,
    /// Socket of the admin API, from the flag that every command shares.
    #[arg(skip)]
    pub admin_socket: Option<PathBuf>,
}

/// A proxy URL as given: it may hold a password, so it is not shown and only judged where errors are ours.
#[derive(Clone)]
pub struct ProxyText(Zeroizing<String>);

impl ProxyText {
    /// The text. Never log it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl std::str::FromStr for ProxyText {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self(Zeroizing::new(text.to_owned())))
    }
}

impl std::fmt::Debug for ProxyText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ProxyText(redacted)")
    }
}

impl Settings {
    /// Socket of the admin API.
    pub fn admin_socket(&self) -> PathBuf {
        self.admin_socket.clone().unwrap_or_else(|| self.data_dir.join("admin.sock"))
    }

    /// Folder of the images.
    pub fn images_dir(&self) -> PathBuf {
        self.images_dir.clone().unwrap_or_else(|| self.data_dir.join("images"))
    }

    /// Base URL of the images.
    pub fn http_url_base(&self) -> WebUrl {
        self.http_url_base.clone().unwrap_or_else(|| {
            let base = self.url_base.to_url();
            let host = base.host_str().unwrap_or_default();
            let text = format!("http://{host}:{}", self.http_listen.port());
            text.parse().unwrap_or_else(|_| unreachable!("the host of a URL makes a URL"))
        })
    }

    /// All durations of the lifecycle.
    pub fn timings(&self) -> Timings {
        Timings {
            inspection_timeout: self.inspection_timeout,
            deployment_timeout: self.deployment_timeout,
            stall_timeout: self.stall_timeout,
            deployment_cap: self.deployment_cap,
            ..Timings::default()
        }
    }

    /// What the command line asks the controller about itself.
    pub fn info(&self) -> Info {
        let http_url_base = self.http_url_base();
        let base = http_url_base.as_str();
        let inspection = self.inspection_image_url.as_ref();
        Info {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            url_base: self.url_base.to_string(),
            http_url_base: http_url_base.to_string(),
            inspection_image_url: inspection
                .map_or_else(|| format!("{base}/images/inspection"), WebUrl::to_string),
        }
    }
}

fn https_url(text: &str) -> Result<WebUrl, String> {
    base_url(text, "https")
}

fn http_url(text: &str) -> Result<WebUrl, String> {
    base_url(text, "http")
}

fn base_url(text: &str, scheme: &str) -> Result<WebUrl, String> {
    let url: WebUrl = text.parse().map_err(|e: WebUrlError| e.to_string())?;
    let parsed = url.to_url();
    let bare = parsed.query().is_none() && parsed.fragment().is_none() && parsed.username().is_empty();
    if parsed.scheme() == scheme && bare && !text.ends_with('/') {
        Ok(url)
    } else {
        Err(format!("expected {scheme}://HOST:PORT without a trailing slash, query or user"))
    }
}

fn loopback(text: &str) -> Result<SocketAddr, String> {
    match text.parse::<SocketAddr>() {
        Ok(address) if address.ip().is_loopback() => Ok(address),
        Ok(_) => {
            Err("the admin API is served on loopback only: expected 127.0.0.1:PORT or [::1]:PORT".to_owned())
        }
        Err(_) => Err("expected ADDRESS:PORT such as 127.0.0.1:8083".to_owned()),
    }
}

/// Longest duration taken. One that leads beyond the calendar would make credentials that are void from their
/// start, and hosts that are booted for ever.
const MAX_DURATION: Duration = Duration::from_hours(365 * 24);

/// A positive duration such as `90s`, `10m` or `1h30m`, a year at most.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let expected = || "expected a duration such as 90s, 10m or 1h30m, above 0 and at most 8760h".to_owned();
    let parsed: jiff::SignedDuration = text.parse().map_err(|_| expected())?;
    let fits = |d: &Duration| !d.is_zero() && *d <= MAX_DURATION;
    Duration::try_from(parsed).ok().filter(fits).ok_or_else(expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_positive_and_within_a_year() {
        for (text, seconds) in [("90s", 90), ("1h30m", 5400), ("8760h", 365 * 24 * 3600)] {
            assert_eq!(duration(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for text in ["", "0s", "-5m", "10", "8760h1s", "9000000000000000s", "99999999999999999999h"] {
            assert!(duration(text).unwrap_err().contains("8760h"), "{text}");
        }
    }
}
