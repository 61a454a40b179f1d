//! QEMU's control protocol, as far as a power button and a cable need it.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::{Instant, sleep};

/// Commands to a running QEMU.
#[derive(Debug)]
pub(super) struct Control(OwnedWriteHalf);

/// What a running QEMU says.
#[derive(Debug)]
pub(super) struct Events(BufReader<OwnedReadHalf>);

/// Connects to the control socket, which appears a moment after QEMU has started.
///
/// # Errors
/// When it does not appear within ten seconds.
pub(super) async fn connect(socket: &Path) -> Result<(Control, Events)> {
    let deadline = Instant::now() + Duration::from_secs(10);
    let stream = loop {
        match UnixStream::connect(socket).await {
            Ok(stream) => break stream,
            Err(error) if Instant::now() > deadline => {
                return Err(error).with_context(|| format!("connect to QEMU at {}", socket.display()));
            }
            Err(_) => sleep(Duration::from_millis(50)).await,
        }
    };
    let (read, write) = stream.into_split();
    let mut control = Control(write);
    control.send("qmp_capabilities", json!({})).await?;
    Ok((control, Events(BufReader::new(read))))
}

impl Control {
    /// Sends one command; its answer comes among the events and is not waited for.
    pub(super) async fn send(&mut self, command: &str, arguments: Value) -> Result<()> {
        let line = format!("{}\n", json!({ "execute": command, "arguments": arguments }));
        self.0.write_all(line.as_bytes()).await.with_context(|| format!("send {command} to QEMU"))
    }
}

impl Events {
    /// Reads until QEMU closes the socket and returns why it shut down, such as `guest-reset`; nothing when
    /// it was killed.
    pub(super) async fn shutdown_reason(mut self) -> Result<Option<String>> {
        let mut reason = None;
        let mut line = String::new();
        while self.0.read_line(&mut line).await.unwrap_or(0) > 0 {
            let message: Value = serde_json::from_str(&line).context("read a line from QEMU")?;
            if let Some(error) = message.get("error") {
                bail!("QEMU refused a command: {error}");
            }
            if message["event"] == "SHUTDOWN" {
                reason = message["data"]["reason"].as_str().map(str::to_owned);
            }
            line.clear();
        }
        Ok(reason)
    }
}
