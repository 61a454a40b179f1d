//! The controller under test: the real program, started, asked, killed and started again as an operator would.

use std::fs::{self, OpenOptions};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use tokio::io::AsyncWriteExt as _;
use tokio::process::{Child, Command};
use tokio::time::timeout;

use super::admin::Admin;
use super::failing::until;
use super::files::{Inspection, programs};
use super::{BOOT_PORT, CALLBACK_PORT, CONTROLLER};

/// How long the controller may take to answer after its start.
const START_LIMIT: Duration = Duration::from_secs(30);
/// How long one command of the CLI may take, `watch` aside.
const COMMAND_LIMIT: Duration = Duration::from_secs(60);

/// Options beyond what every lab needs.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    /// The address agents are told to report to and, when asked for, to get their image from; firmware is always
    /// served at [`CONTROLLER`].
    pub address: IpAddr,
    /// Further arguments of `farrier serve`.
    pub arguments: Vec<String>,
}

impl Default for ServeOptions {
    fn default() -> Self {
        Self { address: CONTROLLER.into(), arguments: Vec::new() }
    }
}

/// A controller; killed when dropped.
#[derive(Debug)]
pub struct Controller {
    program: PathBuf,
    dir: PathBuf,
    options: ServeOptions,
    child: Option<Child>,
}

/// What a command said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// Exit code; none when killed.
    pub code: Option<i32>,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl Said {
    /// The standard output of a command that succeeded.
    ///
    /// # Errors
    /// When it did not succeed.
    pub fn success(self) -> Result<String> {
        ensure!(self.code == Some(0), "the command ended with {:?}: {}{}", self.code, self.out, self.err);
        Ok(self.out)
    }
}

impl Controller {
    pub(super) async fn start(dir: &Path, inspection: &Inspection, options: ServeOptions) -> Result<Self> {
        let images = dir.join("images");
        fs::create_dir_all(images.join("inspection"))?;
        for name in ["vmlinuz", "initrd.img"] {
            share(&inspection.dir.join(name), &images.join("inspection").join(name))?;
        }
        let mut controller = Self { program: programs()?, dir: dir.to_owned(), options, child: None };
        controller.resume().await?;
        Ok(controller)
    }

    /// Starts it again over the same data.
    ///
    /// # Errors
    /// When it does not answer in time.
    pub async fn resume(&mut self) -> Result<()> {
        ensure!(self.child.is_none(), "the controller is running");
        let log = OpenOptions::new().create(true).append(true).open(self.dir.join("controller.log"))?;
        let child = Command::new(&self.program)
            .args(["serve", "--boot-http", "--data-dir"])
            .arg(self.data_dir())
            .arg("--images-dir")
            .arg(self.dir.join("images"))
            .arg("--admin-socket")
            .arg(self.socket())
            .args(["--listen", &self.at(CALLBACK_PORT).to_string()])
            .args(["--http-listen", &self.http_listen()])
            .args(["--url-base", &format!("https://{}", self.at(CALLBACK_PORT))])
            .args(["--http-url-base", &format!("http://{CONTROLLER}:{BOOT_PORT}")])
            .args(&self.options.arguments)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("start {}", self.program.display()))?;
        self.child = Some(child);
        let answering = async || {
            if let Some(status) = self.child.as_mut().map(Child::try_wait).transpose()?.flatten() {
                anyhow::bail!("the controller ended with {status} while it started");
            }
            Ok(self.socket().exists() && Admin::new(&self.socket())?.list("hosts").await.is_ok())
        };
        until(START_LIMIT, "the controller to answer", answering, |up| *up).await?;
        Ok(())
    }

    /// SIGKILL, as if the power of the controller's own machine had gone.
    ///
    /// # Errors
    /// When it was not running.
    pub async fn kill(&mut self) -> Result<()> {
        let mut child = self.child.take().context("the controller is not running")?;
        child.kill().await.context("kill the controller")
    }

    /// Serves a file from its images directory, and returns the URL.
    ///
    /// # Errors
    /// When the file cannot be shared.
    pub fn offer(&self, file: &Path) -> Result<String> {
        let name = file.file_name().context("an image has a name")?.to_string_lossy().into_owned();
        share(file, &self.dir.join("images").join(&name))?;
        Ok(format!("http://{}/images/{name}", self.at(BOOT_PORT)))
    }

    /// Where firmware asks, and every address of the room, IPv4 too, where agents ask elsewhere.
    fn http_listen(&self) -> String {
        if self.options.address == CONTROLLER {
            format!("{CONTROLLER}:{BOOT_PORT}")
        } else {
            format!("[::]:{BOOT_PORT}")
        }
    }

    /// A port of the address agents know, as in a URL.
    fn at(&self, port: u16) -> SocketAddr {
        SocketAddr::from((self.options.address, port))
    }

    /// Its data directory.
    pub fn data_dir(&self) -> PathBuf {
        self.dir.join("data")
    }

    /// Its admin socket.
    pub fn socket(&self) -> PathBuf {
        self.dir.join("admin.sock")
    }

    /// Its admin API.
    ///
    /// # Errors
    /// When no client can be made.
    pub fn admin(&self) -> Result<Admin> {
        Admin::new(&self.socket())
    }

    /// A command of the CLI against this controller, for a caller that wants to watch it.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(args).env("FARRIER_ADMIN_SOCKET", self.socket()).kill_on_drop(true);
        command
    }

    /// Runs a command of the CLI to its end, with `input` on its standard input.
    ///
    /// # Errors
    /// When it does not end in time.
    pub async fn cli(&self, args: &[&str], input: &str) -> Result<Said> {
        let mut command = self.command(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().with_context(|| format!("start {}", self.program.display()))?;
        if let Some(mut stdin) = child.stdin.take() {
            // A command that takes no input may have closed it already.
            stdin.write_all(input.as_bytes()).await.ok();
        }
        let output = timeout(COMMAND_LIMIT, child.wait_with_output())
            .await
            .with_context(|| format!("farrier {args:?} did not end within {COMMAND_LIMIT:?}"))??;
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Ok(Said { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) })
    }
}

/// A hard link where the file system allows it, else a copy: images are large.
fn share(from: &Path, to: &Path) -> Result<()> {
    if to.exists() {
        fs::remove_file(to)?;
    }
    if fs::hard_link(from, to).is_err() {
        fs::copy(from, to).with_context(|| format!("copy {} to {}", from.display(), to.display()))?;
    }
    Ok(())
}
