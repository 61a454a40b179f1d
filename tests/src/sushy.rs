//! `sushy-emulator` with its fake driver: a Redfish service that nobody here wrote, over TLS with a CA of our own and
//! Basic authentication. Its power changes take up to eleven seconds, as real ones do.

use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use farrier_controller::bmc::redfish::RedfishConnector;
use farrier_controller::bmc::{Bmc, Connector as _, HostAccess, Trust};
use serde_json::Value;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep};

use crate::certificate::Authority;

/// Path of the emulator; CI sets it, and without it there is nothing to test against.
const PROGRAM: &str = "FARRIER_SUSHY_EMULATOR";
/// Its user.
pub const USER: &str = "operator";
/// That user's password.
pub const PASSWORD: &str = "sushy-password";
/// The same, as the emulator keeps it.
const PASSWORD_FILE: &str = "operator:$2b$04$d88BeaLoM9pLy34yejUP9OphNfqLQcf2ZUojmX5bjmkDw9DLO/rVG\n";
const SYSTEM: &str = "27946b59-9e44-4fa7-8e91-f3527a1ef094";
/// Longest start of the emulator.
const START_LIMIT: Duration = Duration::from_secs(60);

/// A running emulator, killed when dropped.
#[derive(Debug)]
pub struct Emulator {
    /// Base URL.
    pub base: String,
    /// The CA that issued its certificate.
    pub authority: Authority,
    /// A client that trusts it.
    pub observer: reqwest::Client,
    _child: Child,
    _dir: tempfile::TempDir,
}

/// The emulator's path; `None` only where nobody promised that it is there.
///
/// # Errors
/// When it was promised and is not there.
pub fn program() -> Result<Option<PathBuf>> {
    let Some(path) = std::env::var_os(PROGRAM) else {
        ensure!(
            std::env::var_os("CI").is_none(),
            "CI is set and {PROGRAM} is not; tests/setup/sushy.sh gives its value"
        );
        eprintln!(
            "sushy_emulator: not run, {PROGRAM} is not set; {PROGRAM}=$(tests/setup/sushy.sh) cargo test"
        );
        return Ok(None);
    };
    let path = PathBuf::from(path);
    ensure!(
        path.is_file(),
        "{PROGRAM} is {}, which is not there; tests/setup/sushy.sh installs it",
        path.display()
    );
    Ok(Some(path))
}

impl Emulator {
    /// Starts one on a free port.
    ///
    /// # Errors
    /// When it does not come up.
    pub async fn start(program: &Path) -> Result<Self> {
        let dir = tempfile::tempdir()?;
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        let authority = Authority::new("Sushy test CA")?;
        let leaf = authority.issue("127.0.0.1")?;
        let put = |name: &str, text: &str| -> Result<String> {
            let path = dir.path().join(name);
            std::fs::write(&path, text)?;
            Ok(path.display().to_string())
        };
        let config = format!(
            "SUSHY_EMULATOR_LISTEN_IP = '127.0.0.1'\nSUSHY_EMULATOR_LISTEN_PORT = {port}\n\
             SUSHY_EMULATOR_SSL_CERT = '{}'\nSUSHY_EMULATOR_SSL_KEY = '{}'\nSUSHY_EMULATOR_AUTH_FILE = '{}'\n\
             SUSHY_EMULATOR_FAKE_DRIVER = True\nSUSHY_EMULATOR_STATE_DIR = '{}'\n",
            put("tls.crt", &leaf.certificate_pem)?,
            put("tls.key", &leaf.key_pem)?,
            put("htpasswd", PASSWORD_FILE)?,
            dir.path().display(),
        );
        let log = std::fs::File::create(dir.path().join("emulator.log"))?;
        let mut child = Command::new(program)
            .args(["--fake", "--config", &put("emulator.conf", &config)?])
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("start {}", program.display()))?;
        let ca = reqwest::Certificate::from_pem(authority.pem().as_bytes())?;
        let observer = reqwest::Client::builder().no_proxy().tls_certs_only([ca]).build()?;
        let base = format!("https://127.0.0.1:{port}");
        let begun = Instant::now();
        while observer.get(format!("{base}/redfish/v1/")).send().await.is_err() {
            let said = || std::fs::read_to_string(dir.path().join("emulator.log")).unwrap_or_default();
            ensure!(child.try_wait()?.is_none(), "the emulator ended: {}", said());
            ensure!(begun.elapsed() < START_LIMIT, "the emulator does not answer: {}", said());
            sleep(Duration::from_millis(100)).await;
        }
        Ok(Self { base, authority, observer, _child: child, _dir: dir })
    }

    /// Access to it.
    ///
    /// # Errors
    /// Never, in practice.
    pub fn access(&self, password: &str, trust: Trust) -> Result<HostAccess> {
        Ok(HostAccess {
            base: self.base.parse()?,
            username: USER.to_owned().into(),
            password: password.to_owned().into(),
            trust,
        })
    }

    /// Trust in its certificate and no other.
    pub fn trust(&self) -> Trust {
        Trust::Only(self.authority.pem().as_bytes().to_vec())
    }

    /// Our client, connected.
    ///
    /// # Errors
    /// What the client says.
    pub async fn connect(&self) -> Result<Arc<dyn Bmc>> {
        let access = self.access(PASSWORD, self.trust())?;
        Ok(RedfishConnector::new(None).connect(&access).await?)
    }

    /// The system as somebody else sees it.
    ///
    /// # Errors
    /// When it does not answer.
    pub async fn system(&self) -> Result<Value> {
        let url = format!("{}/redfish/v1/Systems/{SYSTEM}", self.base);
        let response = self.observer.get(url).basic_auth(USER, Some(PASSWORD)).send().await?;
        Ok(response.error_for_status()?.json().await?)
    }

    /// One of its boot settings.
    ///
    /// # Errors
    /// When there is no such setting.
    pub async fn boot(&self, field: &str) -> Result<String> {
        let system = self.system().await?;
        let value = system["Boot"][field].as_str();
        value.map(str::to_owned).with_context(|| format!("no {field} in {system}"))
    }
}
