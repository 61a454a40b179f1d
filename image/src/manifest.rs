//! `manifest.json`: what an inspection image is made of, for people, for the controller and for comparing
//! two builds.

use crate::modules::Profile;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The build report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    /// Which module lists were used.
    pub profile: Profile,
    /// Kernel release, as `uname -r` prints.
    pub kernel_version: String,
    /// The agent, PID 1.
    pub agent: AgentRecord,
    /// The kernel file.
    pub vmlinuz: FileRecord,
    /// The initramfs file.
    pub initrd: FileRecord,
    /// Bytes that a machine downloads to boot: vmlinuz and initrd.
    pub total_bytes: u64,
    /// What `total_bytes` should stay below.
    pub goal_bytes: u64,
    /// Number of kernel modules in the image.
    pub module_count: usize,
    /// Modules the agent loads at start, in order.
    pub modules_loaded: Vec<String>,
    /// Optional modules this kernel does not have.
    pub modules_absent: Vec<String>,
    /// Soft dependencies this kernel does not have, by module.
    pub unmet_softdeps: BTreeMap<String, BTreeSet<String>>,
    /// Firmware in the image and not.
    pub firmware: FirmwareRecord,
    /// The date on every file of the initramfs and the earliest of the agent's clock, in seconds since 1970.
    pub source_date_epoch: u32,
}

/// The agent in the image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentRecord {
    /// Version of the workspace it was built from; none when the binary was given.
    pub version: Option<String>,
    /// How it was built, or that it was given, and why.
    pub built_by: String,
    /// Size and digest.
    #[serde(flatten)]
    pub file: FileRecord,
}

/// A file by size and digest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FileRecord {
    /// Size in bytes.
    pub bytes: u64,
    /// SHA-256 in lower-case hexadecimal.
    pub sha256: String,
}

/// Firmware in the image.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FirmwareRecord {
    /// Number of files in the image.
    pub files: usize,
    /// Packages that could not be had on the build machine.
    pub packages_missing: Vec<String>,
    /// Files the modules may ask for that are not in the image, by module.
    pub missing: BTreeMap<String, BTreeSet<String>>,
}

impl FileRecord {
    /// Of bytes in memory.
    #[must_use]
    pub fn of(bytes: &[u8]) -> FileRecord {
        FileRecord {
            bytes: u64::try_from(bytes.len()).unwrap_or(u64::MAX),
            sha256: hex::encode(Sha256::digest(bytes)),
        }
    }
}

impl Manifest {
    /// Whether the image is as small as its profile is to be.
    #[must_use]
    pub fn is_within_goal(&self) -> bool {
        self.total_bytes <= self.goal_bytes
    }

    /// Writes it as indented JSON with a final newline.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&self, path: &Path) -> std::io::Result<()> {
        let mut text = serde_json::to_vec_pretty(self)?;
        text.push(b'\n');
        std::fs::write(path, text)
    }
}

impl std::fmt::Display for Manifest {
    /// The sizes, as people want them at the end of a build.
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let goal = if self.is_within_goal() { "within" } else { "ABOVE" };
        writeln!(
            out,
            "profile   {} (kernel {}, {} modules)",
            self.profile, self.kernel_version, self.module_count
        )?;
        writeln!(out, "agent     {}  {}", Megabytes(self.agent.file.bytes), self.agent.built_by)?;
        writeln!(out, "vmlinuz   {}  sha256:{}", Megabytes(self.vmlinuz.bytes), self.vmlinuz.sha256)?;
        writeln!(out, "initrd    {}  sha256:{}", Megabytes(self.initrd.bytes), self.initrd.sha256)?;
        writeln!(
            out,
            "total     {}  {goal} the goal of {}",
            Megabytes(self.total_bytes),
            Megabytes(self.goal_bytes)
        )?;
        let missing: usize = self.firmware.missing.values().map(BTreeSet::len).sum();
        if missing > 0 {
            writeln!(
                out,
                "firmware  {} files in the image, {missing} of {} modules missing; packages not to be had: {}",
                self.firmware.files,
                self.firmware.missing.len(),
                if self.firmware.packages_missing.is_empty() {
                    "-".to_owned()
                } else {
                    self.firmware.packages_missing.join(", ")
                }
            )?;
        }
        Ok(())
    }
}

/// Bytes printed in millions, aligned.
struct Megabytes(u64);

impl std::fmt::Display for Megabytes {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{:>3}.{:02} MB", self.0 / 1_000_000, self.0 % 1_000_000 / 10_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(total_bytes: u64) -> Manifest {
        let file = FileRecord::of(b"abc");
        Manifest {
            profile: Profile::Full,
            kernel_version: "6.1.0-test".into(),
            agent: AgentRecord { version: None, built_by: "given".into(), file: file.clone() },
            vmlinuz: file.clone(),
            initrd: file,
            total_bytes,
            goal_bytes: 60_000_000,
            module_count: 3,
            modules_loaded: vec!["ext4".into()],
            modules_absent: Vec::new(),
            unmet_softdeps: BTreeMap::new(),
            firmware: FirmwareRecord {
                files: 1,
                packages_missing: vec!["firmware-x".into()],
                missing: BTreeMap::from([("card".into(), BTreeSet::from(["a.fw".into(), "b.fw".into()]))]),
            },
            source_date_epoch: 0,
        }
    }

    #[test]
    fn a_manifest_survives_json() {
        let text = serde_json::to_string(&sample(5)).expect("json");
        assert_eq!(serde_json::from_str::<Manifest>(&text).expect("parse"), sample(5));
        assert!(
            text.contains(r#""agent":{"version":null,"builtBy":"given","bytes":3,"sha256":"ba7816bf"#),
            "{text}"
        );
    }

    #[test]
    fn the_summary_tells_whether_the_goal_is_met_and_what_is_missing() {
        let small = sample(59_990_000).to_string();
        assert!(small.contains("59.99 MB  within the goal of  60.00 MB"), "{small}");
        assert!(small.contains("2 of 1 modules missing; packages not to be had: firmware-x"), "{small}");
        assert!(sample(60_000_001).to_string().contains("ABOVE the goal"));
        assert!(sample(60_000_000).is_within_goal() && !sample(60_000_001).is_within_goal());
    }
}
