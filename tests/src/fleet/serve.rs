//! The controller of a fleet: the real program as a process, killed and started again over the same data.

use std::fs::OpenOptions;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep};

use super::admin::Admin;

/// How long it may take to answer after its start.
const START_LIMIT: Duration = Duration::from_secs(60);

/// What the process costs at one moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// Processor time used since its start.
    pub processor: Duration,
    /// Resident memory, in MiB.
    pub memory_mib: f64,
    /// The most it ever was, in MiB.
    pub peak_mib: f64,
}

/// A controller process; killed when dropped.
#[derive(Debug)]
pub struct Serve {
    program: PathBuf,
    dir: PathBuf,
    callbacks: SocketAddr,
    plain: SocketAddr,
    flags: Vec<String>,
    child: Option<Child>,
}

impl Serve {
    /// A controller that is not started yet; data, socket and log go to `dir`, `flags` to its command line.
    ///
    /// # Errors
    /// When no port is free.
    pub fn new(program: &Path, dir: &Path, flags: &[&str]) -> Result<Self> {
        ensure!(
            program.is_file(),
            "no {}; build it first: cargo build -p farrier-controller",
            program.display()
        );
        // Held together, so that they differ.
        let free = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("find a free port");
        let (callbacks, plain) = (free()?, free()?);
        Ok(Self {
            program: program.to_owned(),
            dir: dir.to_owned(),
            callbacks: callbacks.local_addr()?,
            plain: plain.local_addr()?,
            flags: flags.iter().map(|flag| (*flag).to_owned()).collect(),
            child: None,
        })
    }

    /// Starts the process and does not wait for it.
    ///
    /// # Errors
    /// When it is running, or cannot be started.
    pub fn spawn(&mut self) -> Result<()> {
        ensure!(self.child.is_none(), "the controller is running");
        let log = OpenOptions::new().create(true).append(true).open(self.log())?;
        let child = Command::new(&self.program)
            .args(["serve", "--boot-http", "--data-dir"])
            .arg(self.data_dir())
            .arg("--admin-socket")
            .arg(self.socket())
            .args(["--listen", &self.callbacks.to_string()])
            .args(["--http-listen", &self.plain.to_string()])
            .args(["--url-base", &format!("https://{}", self.callbacks)])
            .args(["--http-url-base", &self.plain_base()])
            .args(&self.flags)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("start {}", self.program.display()))?;
        self.child = Some(child);
        Ok(())
    }

    /// Waits until it answers.
    ///
    /// # Errors
    /// When it ends instead, or takes too long.
    pub async fn answers(&mut self) -> Result<()> {
        let begun = Instant::now();
        let admin = self.admin()?;
        while !admin.is_up().await {
            if let Some(status) = self.child.as_mut().map(Child::try_wait).transpose()?.flatten() {
                bail!("the controller ended with {status}; its log is {}", self.log().display());
            }
            ensure!(
                begun.elapsed() < START_LIMIT,
                "the controller does not answer; see {}",
                self.log().display()
            );
            sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }

    /// SIGKILL: nothing is flushed, nobody is told.
    ///
    /// # Errors
    /// When it is not running, or ended before by itself.
    pub async fn kill(&mut self) -> Result<()> {
        let mut child = self.child.take().context("the controller is not running")?;
        if let Some(status) = child.try_wait()? {
            bail!("the controller ended by itself with {status}; its log is {}", self.log().display());
        }
        child.kill().await.context("kill the controller")
    }

    /// Its admin API.
    ///
    /// # Errors
    /// When no client can be made.
    pub fn admin(&self) -> Result<Admin> {
        Admin::new(&self.socket())
    }

    /// Base URL that firmware asks.
    pub fn plain_base(&self) -> String {
        format!("http://{}", self.plain)
    }

    /// Where it writes its log.
    pub fn log(&self) -> PathBuf {
        self.dir.join("controller.log")
    }

    /// What it has cost so far.
    ///
    /// # Errors
    /// When it is not running.
    pub fn cost(&self) -> Result<Cost> {
        let pid = self.child.as_ref().and_then(Child::id).context("the controller is not running")?;
        let read = |file: &str| std::fs::read_to_string(format!("/proc/{pid}/{file}"));
        let status = read("status")?;
        let mib = |field: &str| -> Result<f64> {
            let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
            let kib: f64 =
                line.with_context(|| format!("no {field}"))?.trim().trim_end_matches(" kB").parse()?;
            Ok(kib / 1024.0)
        };
        // After the name, which may hold anything, come the fields from the third on.
        let stat = read("stat")?;
        let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or_default().split(' ').collect();
        let ticks =
            |at: usize| fields.get(at).and_then(|f| f.parse::<u64>().ok()).context("no processor time");
        let per_second = nix::unistd::sysconf(nix::unistd::SysconfVar::CLK_TCK)?.unwrap_or(100);
        let ticks = ticks(11)? + ticks(12)?;
        let processor = Duration::from_millis(ticks * 1000 / u64::try_from(per_second)?);
        Ok(Cost { processor, memory_mib: mib("VmRSS")?, peak_mib: mib("VmHWM")? })
    }

    /// Bytes of its database, the log that is not merged yet included.
    ///
    /// # Errors
    /// When there is no database.
    pub fn database_bytes(&self) -> Result<u64> {
        let mut bytes = 0;
        for file in std::fs::read_dir(self.data_dir())? {
            let file = file?;
            if file.file_name().to_string_lossy().starts_with("farrier.db") {
                bytes += file.metadata()?.len();
            }
        }
        ensure!(bytes > 0, "no database in {}", self.data_dir().display());
        Ok(bytes)
    }

    fn data_dir(&self) -> PathBuf {
        self.dir.join("data")
    }

    fn socket(&self) -> PathBuf {
        self.dir.join("admin.sock")
    }
}
