//! The cases that must pass before anything is called working.

mod bond;
mod credentials;
mod failures;
mod input;
mod install;
mod killed;
mod machines;
mod networks;
mod nocloud;
mod run;
mod seeds;
mod straight;

use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::time::Duration;

use anyhow::{Context as _, Result};

use crate::lab::Inspection;
use crate::target_os::{CloudOs, TargetOs};

/// What a case is given.
#[derive(Debug)]
pub struct Given {
    /// Where it may write.
    pub dir: PathBuf,
    /// The inspection image.
    pub inspection: Inspection,
    /// The operating system to install.
    pub os: TargetOs,
    /// The one with cloud-init, for cases that [install it](Case::installs_cloud_os).
    pub cloud_os: Option<CloudOs>,
}

type Running<'a> = Pin<Box<dyn Future<Output = Result<()>> + 'a>>;

/// One case.
pub struct Case {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it shows, in a line.
    pub shows: &'static str,
    /// Longest it may take, on a machine that does other things as well.
    pub limit: Duration,
    body: for<'a> fn(&'a Given) -> Running<'a>,
}

impl std::fmt::Debug for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Case").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Case {
    /// Whether it installs the image with cloud-init, which is built for no other.
    pub fn installs_cloud_os(&self) -> bool {
        self.name == NOCLOUD
    }

    /// Runs it to its end, in this process and its namespaces.
    ///
    /// # Errors
    /// When the case fails or takes longer than its limit.
    pub async fn run(&self, given: &Given) -> Result<()> {
        let running = (self.body)(given);
        tokio::time::timeout(self.limit, running)
            .await
            .with_context(|| format!("the case took longer than {} minutes", self.limit.as_secs() / 60))?
    }
}

const fn minutes(count: u64) -> Duration {
    Duration::from_secs(count * 60)
}

/// The case that installs the image with cloud-init.
const NOCLOUD: &str = "nocloud";

/// Every case; the longest first, so that the last to end is not the last to begin.
pub const CASES: [Case; 19] = [
    Case {
        name: NOCLOUD,
        shows: "Debian's cloud-init reads what was planted for it, does it, and has no complaint",
        limit: minutes(25),
        body: |given| Box::pin(nocloud::run(given)),
    },
    Case {
        name: "straight",
        shows: "an empty machine ends up running the installed system, every byte and fact as given",
        limit: minutes(25),
        body: |given| Box::pin(straight::run(given)),
    },
    Case {
        name: "controller-killed",
        shows: "the controller is killed during the write, comes back, and the run completes",
        limit: minutes(25),
        body: |given| Box::pin(killed::run(given)),
    },
    Case {
        name: "bios",
        shows: "a machine without UEFI boots the agent and then the installed system by its BIOS",
        limit: minutes(25),
        body: |given| Box::pin(machines::bios(given)),
    },
    Case {
        name: "two-networks",
        shows: "without BOOTIF the agent finds the card that leads to the controller, the second; NVMe disks",
        limit: minutes(25),
        body: |given| Box::pin(networks::two(given)),
    },
    Case {
        name: "vlan",
        shows: "the agent talks in the VLAN it is told, where alone the controller is; SATA disks",
        limit: minutes(25),
        body: |given| Box::pin(networks::vlan(given)),
    },
    Case {
        name: "bond",
        shows: "two links are one: each loses its cable in turn during the write, and the run completes",
        limit: minutes(25),
        body: |given| Box::pin(bond::run(given)),
    },
    Case {
        name: "ipv6",
        shows: "where DHCP gives IPv4 to firmware alone, agent and system work over IPv6; SCSI disks",
        limit: minutes(25),
        body: |given| Box::pin(networks::ipv6(given)),
    },
    Case {
        name: "4kn",
        shows: "an NVMe disk with 4096-byte sectors is written with an image made for it, and boots",
        limit: minutes(25),
        body: |given| Box::pin(machines::native_sectors(given)),
    },
    Case {
        name: "little-memory",
        shows: "an image larger than the machine's 512 MiB of memory is written, every byte of it",
        limit: minutes(25),
        body: |given| Box::pin(machines::little_memory(given)),
    },
    Case {
        name: "truncated",
        shows: "an image cut short in flight leaves no bootable disk",
        limit: minutes(15),
        body: |given| Box::pin(failures::truncated(given)),
    },
    Case {
        name: "wrong-digest",
        shows: "an image with another digest leaves no bootable disk",
        limit: minutes(12),
        body: |given| Box::pin(failures::wrong_digest(given)),
    },
    Case {
        name: "no-cos-oem",
        shows: "an image without COS_OEM leaves no bootable disk",
        limit: minutes(12),
        body: |given| Box::pin(failures::no_cos_oem(given)),
    },
    Case {
        name: "too-large",
        shows: "an image larger than every disk is refused before anything is written",
        limit: minutes(12),
        body: |given| Box::pin(failures::too_large(given)),
    },
    Case {
        name: "foreign-sectors",
        shows: "an image for 512-byte sectors is refused for a 4Kn disk before anything is written",
        limit: minutes(12),
        body: |given| Box::pin(failures::foreign_sectors(given)),
    },
    Case {
        name: "image-absent",
        shows: "an image that is not there is reported, and nothing is written",
        limit: minutes(12),
        body: |given| Box::pin(failures::image_absent(given)),
    },
    Case {
        name: "disk-absent",
        shows: "a pinned disk that is not there is reported, and no other disk is written",
        limit: minutes(12),
        body: |given| Box::pin(failures::disk_absent(given)),
    },
    Case {
        name: "credentials",
        shows: "bad, expired, reused and foreign nonces and tokens are refused alike and change nothing",
        limit: minutes(5),
        body: |given| Box::pin(credentials::run(given)),
    },
    Case {
        name: "bad-input",
        shows: "bad input at the command line and the API names the field and stores nothing",
        limit: minutes(5),
        body: |given| Box::pin(input::run(given)),
    },
];

/// The case of that name.
///
/// # Errors
/// When there is none; the names there are are in the error.
pub fn find(name: &str) -> Result<&'static Case> {
    let names: Vec<_> = CASES.iter().map(|case| case.name).collect();
    CASES
        .iter()
        .find(|case| case.name == name)
        .with_context(|| format!("no case {name:?}; there are {}", names.join(", ")))
}

/// Where a case writes.
pub fn directory(build: &Path, name: &str) -> PathBuf {
    build.join("e2e").join(name)
}
