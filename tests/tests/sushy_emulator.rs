//! The Redfish client against `sushy-emulator` with its fake driver: a service that nobody here wrote, over TLS
//! with a CA of our own and Basic authentication. Its power changes take up to eleven seconds, as real ones do.

use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use farrier_controller::bmc::redfish::RedfishConnector;
use farrier_controller::bmc::{Bmc, BootMode, Connector as _, HostAccess, ResetKind, Trust};
use farrier_shared::lifecycle::PowerState;
use farrier_shared::lifecycle::fault::{BmcObservation, Failure};
use farrier_tests::certificate::Authority;
use serde_json::Value;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep};

/// Path of the emulator; CI sets it, and without it there is nothing to test against.
const PROGRAM: &str = "FARRIER_SUSHY_EMULATOR";
const USER: &str = "operator";
const PASSWORD: &str = "sushy-password";
/// The same, as the emulator keeps it.
const PASSWORD_FILE: &str = "operator:$2b$04$d88BeaLoM9pLy34yejUP9OphNfqLQcf2ZUojmX5bjmkDw9DLO/rVG\n";
const SYSTEM: &str = "27946b59-9e44-4fa7-8e91-f3527a1ef094";
/// Longest start of the emulator.
const START_LIMIT: Duration = Duration::from_secs(60);

struct Emulator {
    base: String,
    ca_pem: String,
    observer: reqwest::Client,
    _child: Child,
    _dir: tempfile::TempDir,
}

/// The emulator's path; `None` only where nobody promised that it is there.
fn program() -> Result<Option<PathBuf>> {
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
    async fn start(program: &Path) -> Result<Self> {
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
        Ok(Self { base, ca_pem: authority.pem().to_owned(), observer, _child: child, _dir: dir })
    }

    fn access(&self, password: &str, trust: Trust) -> Result<HostAccess> {
        Ok(HostAccess {
            base: self.base.parse()?,
            username: USER.to_owned().into(),
            password: password.to_owned().into(),
            trust,
        })
    }

    async fn connect(&self) -> Result<Arc<dyn Bmc>> {
        let access = self.access(PASSWORD, Trust::Only(self.ca_pem.clone().into_bytes()))?;
        Ok(RedfishConnector::new(None).connect(&access).await?)
    }

    /// The system as somebody else sees it.
    async fn system(&self) -> Result<Value> {
        let url = format!("{}/redfish/v1/Systems/{SYSTEM}", self.base);
        let response = self.observer.get(url).basic_auth(USER, Some(PASSWORD)).send().await?;
        Ok(response.error_for_status()?.json().await?)
    }

    async fn boot(&self, field: &str) -> Result<String> {
        let system = self.system().await?;
        let value = system["Boot"][field].as_str();
        value.map(str::to_owned).with_context(|| format!("no {field} in {system}"))
    }
}

#[tokio::test]
async fn the_client_drives_a_service_that_nobody_here_wrote() -> Result<()> {
    rustls::crypto::ring::default_provider().install_default().ok();
    let Some(program) = program()? else { return Ok(()) };
    let emulator = Emulator::start(&program).await?;
    let bmc = emulator.connect().await?;

    let facts = bmc.system_info().await?;
    ensure!(facts.power == Some(PowerState::Off), "{facts:?}");
    ensure!(facts.details.is_some_and(|d| d.manufacturer == "Sushy Emulator"), "no details");

    for (mode, shown) in
        [(BootMode::Uefi, "UEFI"), (BootMode::Legacy, "Legacy"), (BootMode::AsConfigured, "Legacy")]
    {
        bmc.set_boot_pxe_once(mode).await?;
        let seen = (
            emulator.boot("BootSourceOverrideTarget").await?,
            emulator.boot("BootSourceOverrideMode").await?,
        );
        ensure!(seen == ("Pxe".to_owned(), shown.to_owned()), "{mode:?} gave {seen:?}");
    }
    bmc.clear_boot_override().await?;
    let target = emulator.boot("BootSourceOverrideTarget").await?;
    ensure!(target == "None", "the override is still {target}");

    for (action, ends) in [
        (ResetKind::ForceOff, "Off"),
        (ResetKind::On, "On"),
        (ResetKind::On, "On"),
        (ResetKind::ForceRestart, "On"),
        (ResetKind::GracefulShutdown, "Off"),
        (ResetKind::ForceRestart, "On"),
        (ResetKind::ForceOff, "Off"),
    ] {
        bmc.reset(action).await.with_context(|| format!("{action:?}"))?;
        let power = emulator.system().await?["PowerState"].clone();
        ensure!(power == ends, "{action:?} ended in {power}");
        ensure!(bmc.power_state().await?.as_str() == ends, "the client sees another power state");
    }
    Ok(())
}

#[tokio::test]
async fn a_wrong_password_or_an_unknown_ca_is_told_as_such() -> Result<()> {
    rustls::crypto::ring::default_provider().install_default().ok();
    let Some(program) = program()? else { return Ok(()) };
    let emulator = Emulator::start(&program).await?;
    let other_ca = Authority::new("Another CA")?.pem().as_bytes().to_vec();
    let ours = Trust::Only(emulator.ca_pem.clone().into_bytes());
    for (access, said) in [
        (emulator.access("wrong", ours)?, "credentials"),
        (emulator.access(PASSWORD, Trust::Only(other_ca))?, "certificate"),
    ] {
        let error = match RedfishConnector::new(None).connect(&access).await {
            Ok(_) => anyhow::bail!("connected, expected trouble with {said}"),
            Err(error) => error,
        };
        ensure!(error.to_string().contains(said), "{error}");
        let failed =
            matches!(error.observation(), BmcObservation::Failed { failure: Failure::Connection, .. });
        ensure!(failed, "{error:?} is taken for something that passes by itself");
    }
    Ok(())
}
