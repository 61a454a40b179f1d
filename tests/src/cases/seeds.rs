//! What is planted for the installed system, and where on the disk: by who is to read it.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use anyhow::{Result, ensure};

use super::run::UserData;
use crate::lab::GREETING_PORT;
use crate::partitions::{self, Sector};
use crate::{disk_check, secrets};

/// Who reads the user-data in the installed system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seed {
    /// The greeter of [`TargetOs`](crate::target_os::TargetOs), in COS_OEM: what the agent plants unasked.
    CosOem,
    /// cloud-init, in the root file system.
    NoCloud,
}

impl Seed {
    /// What the agent has to be told.
    pub(super) fn option(self) -> Option<&'static str> {
        match self {
            Self::CosOem => None,
            Self::NoCloud => Some("seed=nocloud"),
        }
    }

    /// The partition in which it is planted.
    pub(super) fn partition(self) -> &'static str {
        match self {
            Self::CosOem => "oem",
            Self::NoCloud => "root",
        }
    }

    /// User-data with a marker that the system tells, for a system that reaches the room at `address`.
    pub(super) fn user_data(self, address: IpAddr) -> Result<UserData> {
        let report = format!("http://{}/up", SocketAddr::from((address, GREETING_PORT)));
        let marker = secrets::random("marker")?;
        let secret = secrets::random("join-token")?;
        let text = match self {
            Self::CosOem => format!(
                "#cloud-config\n# Umlauts and quotes survive: Grüße, \"x\" 'y' \\ $HOME\nfarrier-lab:\n  \
                 marker: {marker}\n  report: {report}\n  secret: {secret}\n"
            ),
            Self::NoCloud => cloud_config(&marker, &report, &secret),
        };
        Ok(UserData { text, marker, secret: secrets::Secret::text("user-data", &secret)? })
    }

    /// Checks that the user-data of `host` and what goes with it are on the disk, byte for byte and for root alone.
    ///
    /// # Errors
    /// At the first file that is not as it must be.
    pub(super) fn is_planted(
        self,
        disk: &Path,
        sector: Sector,
        host: &str,
        user_data: &UserData,
    ) -> Result<()> {
        let part = disk_check::part(&partitions::read(disk, sector)?, self.partition())?;
        for (path, expected) in self.files(host, user_data) {
            let file = partitions::planted(disk, &part, path)?;
            ensure!(file.bytes == expected.as_bytes(), "{path} holds other bytes than were ordered");
            let (mode, owner) = (file.mode, (file.uid, file.gid));
            ensure!(mode == 0o600 && owner == (0, 0), "{path} has mode {mode:o} and owner {owner:?}");
        }
        Ok(())
    }

    /// Every planted file by its path in the partition.
    fn files(self, host: &str, user_data: &UserData) -> [(&'static str, String); 2] {
        let (id, text) = (provider_id(host), user_data.text.clone());
        match self {
            Self::CosOem => [("/99_beskar7.yaml", text), ("/beskar7/provider-id", id)],
            Self::NoCloud => [
                ("/var/lib/cloud/seed/nocloud/user-data", text),
                (
                    "/var/lib/cloud/seed/nocloud/meta-data",
                    format!("instance-id: \"{id}\"\nlocal-hostname: \"{host}\"\nprovider-id: \"{id}\"\n"),
                ),
            ],
        }
    }
}

/// By which the installed system knows itself.
pub(super) fn provider_id(host: &str) -> String {
    format!("b7://default/{host}")
}

/// For cloud-init: a file, a command before it and one after it; the greeter of
/// [`CloudOs`](crate::target_os::CloudOs) tells what came of them.
fn cloud_config(marker: &str, report: &str, secret: &str) -> String {
    format!(
        r#"#cloud-config
# Umlauts and quotes survive: Grüße, "x" 'y' \ $HOME
bootcmd:
  - [sh, -c, 'mkdir -p /run/farrier-lab && echo "$INSTANCE_ID" > /run/farrier-lab/bootcmd']
write_files:
  - path: /etc/farrier-lab/told
    permissions: "0640"
    content: |
      marker={marker}
      report={report}
  - path: /etc/farrier-lab/secret
    permissions: "0600"
    content: {secret}
runcmd:
  - [sh, -c, 'sed -n "s/^marker=//p" /etc/farrier-lab/told > /run/farrier-lab/runcmd']
"#
    )
}
