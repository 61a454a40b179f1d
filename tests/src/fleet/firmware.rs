//! Firmware and iPXE of one server: from power-on to a kernel command line.

use std::net::Ipv4Addr;
use std::time::Duration;

use anyhow::{Context as _, Result};
use reqwest::Client;

/// How often the embedded first stage asks before it leaves for the next boot device.
const ASKS: u32 = 60;
/// Between two questions of it.
const PAUSE: Duration = Duration::from_secs(10);
/// Longest wait for one script.
const FETCH: Duration = Duration::from_secs(30);

/// Where a network boot ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Booted {
    /// In the inspection image, with this command line.
    Kernel(String),
    /// At the next boot device.
    Disk,
}

/// A server's firmware.
#[derive(Clone, Debug)]
pub(super) struct Firmware {
    client: Client,
    first_stage: String,
    /// How many times faster than real it waits.
    haste: u32,
}

impl Firmware {
    /// Firmware that asks `controller` from `address`, since the controller counts requests by address.
    pub(super) fn new(controller: &str, address: Ipv4Addr, mac: &str, haste: u32) -> Result<Self> {
        let client = Client::builder()
            .no_proxy()
            .local_address(std::net::IpAddr::from(address))
            .tls_certs_only([])
            .pool_max_idle_per_host(0)
            .timeout(FETCH)
            .build()
            .context("make a client")?;
        Ok(Self { client, first_stage: format!("{controller}/ipxe/{mac}?platform=efi"), haste: haste.max(1) })
    }

    /// Boots from the network.
    pub(super) async fn boot(&self) -> Booted {
        for _ in 0..ASKS {
            if let Some(script) = self.fetch(&self.first_stage).await {
                return self.run(script).await;
            }
            self.wait(PAUSE).await;
        }
        Booted::Disk
    }

    async fn wait(&self, time: Duration) {
        tokio::time::sleep(time / self.haste).await;
    }

    async fn fetch(&self, url: &str) -> Option<String> {
        let response = self.client.get(url).send().await.ok()?;
        response.error_for_status().ok()?.text().await.ok()
    }

    /// The few commands our scripts are made of. A chain that fails goes on with the next line, since ours say
    /// `||`.
    async fn run(&self, mut script: String) -> Booted {
        let mut cmdline = None;
        'script: loop {
            for line in script.lines() {
                let (command, rest) = line.split_once(' ').unwrap_or((line, ""));
                match command {
                    "chain" => {
                        let url = rest.split(' ').find(|word| word.starts_with("http")).unwrap_or_default();
                        if let Some(next) = self.fetch(url).await {
                            script = next;
                            continue 'script;
                        }
                    }
                    "sleep" => self.wait(Duration::from_secs(rest.trim().parse().unwrap_or(0))).await,
                    "kernel" => cmdline = rest.split_once(' ').map(|(_, words)| words.to_owned()),
                    "boot" => return cmdline.map_or(Booted::Disk, Booted::Kernel),
                    "exit" => return Booted::Disk,
                    _ => {}
                }
            }
            return Booted::Disk;
        }
    }
}
