//! How a disk says it does: an NVMe disk in its SMART / Health Information log (NVM Express Base Specification, log
//! page 02h), an ATA disk by whether it expects to fail.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use farrier_shared::contract::options::disk_hints::Transport;
use serde::Serialize;

use super::ata::{self, Verdict};
use crate::disk::Disk;
use crate::sys::{nvme, scsi};

/// How long an ATA disk may take to answer. A disk that takes longer has its link reset by the kernel.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long answers are waited for. [`PATIENCE`] does not bound an answer: the kernel's error handling on a dying disk
/// holds its question, and those of all disks on one adapter, for minutes.
const WAIT: Duration = Duration::from_secs(15);

/// What a disk says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Health {
    /// What is critical, in words; empty on a healthy disk.
    pub(super) critical: Vec<&'static str>,
    /// What an NVMe disk says beyond that.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub(super) log: Option<Log>,
}

/// What an NVMe disk's log says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Log {
    /// Degrees Celsius.
    pub(super) temperature_celsius: i32,
    /// Of the spare capacity, in percent.
    pub(super) available_spare_percent: u8,
    /// Of the endurance, in percent; may exceed 100.
    pub(super) percentage_used: u8,
    /// Hours.
    pub(super) power_on_hours: u64,
    /// Losses of power without notice.
    pub(super) unsafe_shutdowns: u64,
    /// Unrecovered errors of data integrity.
    pub(super) media_errors: u64,
}

/// How a disk is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Nvme,
    Ata,
}

/// Only who certainly understands the question is asked: bridges to USB and volumes of RAID adapters have been known to
/// hang on commands they do not expect.
fn way(disk: &Disk) -> Option<Way> {
    match disk.attachment.transport? {
        Transport::Nvme => Some(Way::Nvme),
        Transport::Sata => Some(Way::Ata),
        _ => None,
    }
}

/// A question that has been put to disks, each on a thread of its own: one that hangs holds up nobody.
#[derive(Debug)]
pub(super) struct Question {
    asked: Vec<PathBuf>,
    said: Receiver<(PathBuf, Option<Health>)>,
    until: Instant,
}

/// What disks said.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Answers {
    /// By path; disks that do not tell are absent.
    health: HashMap<PathBuf, Health>,
    /// Paths of those that were waited for in vain.
    silent: Vec<PathBuf>,
}

impl Question {
    /// Asks those of the disks that can be asked.
    pub(super) fn put<'a>(disks: impl Iterator<Item = &'a Disk>) -> Self {
        Self::put_to(disks, WAIT, answer)
    }

    fn put_to<'a>(
        disks: impl Iterator<Item = &'a Disk>,
        wait: Duration,
        answer: impl Fn(Way, &Path) -> io::Result<Option<Health>> + Clone + Send + 'static,
    ) -> Self {
        let until = Instant::now() + wait;
        let (tell, said) = channel();
        let mut asked = Vec::new();
        for disk in disks {
            let Some(way) = way(disk) else { continue };
            let (tell, answer, path) = (tell.clone(), answer.clone(), disk.path.clone());
            let asking = thread::Builder::new().name(disk.name.clone()).spawn(move || {
                let health = answer(way, &path).unwrap_or_else(|error| {
                    tracing::debug!(disk = %path.display(), %error, "does not tell its health");
                    None
                });
                // Nobody listens any more once the report is on its way.
                let _ = tell.send((path, health));
            });
            match asking {
                Ok(_left_to_itself) => asked.push(disk.path.clone()),
                Err(error) => tracing::debug!(disk = disk.name, %error, "not asked for its health"),
            }
        }
        Self { asked, said, until }
    }

    /// What is said in time. May block for some seconds.
    pub(super) fn answers(self) -> Answers {
        let Self { mut asked, said, until } = self;
        let mut health = HashMap::new();
        // Ends at once when all have answered, since each takes its sender along.
        while let Ok((path, said)) = said.recv_timeout(until.saturating_duration_since(Instant::now())) {
            asked.retain(|other| *other != path);
            health.extend(said.map(|said| (path, said)));
        }
        Answers { health, silent: asked }
    }
}

impl Answers {
    /// What this disk said.
    pub(super) fn of(&self, disk: &Disk) -> Option<Health> {
        self.health.get(&disk.path).cloned()
    }

    /// What a person should know of the disks that said nothing.
    pub(super) fn notes(&self) -> impl Iterator<Item = String> {
        let wait = WAIT.as_secs();
        self.silent
            .iter()
            .map(move |path| format!("{} did not tell its health within {wait} s", path.display()))
    }
}

fn answer(way: Way, path: &Path) -> io::Result<Option<Health>> {
    let file = open(path)?;
    match way {
        Way::Nvme => nvme::health_log(file).map(|log| Some(read(&log))),
        Way::Ata => scsi::command_without_data(file, ata::return_status(), PATIENCE)
            .map(|sense| ata::verdict(&sense).map(judged)),
    }
}

fn open(path: &Path) -> io::Result<File> {
    let flags = nix::libc::O_CLOEXEC | nix::libc::O_NONBLOCK;
    File::options().read(true).custom_flags(flags).open(path)
}

fn judged(verdict: Verdict) -> Health {
    let critical = match verdict {
        Verdict::Good => vec![],
        Verdict::Failing => vec!["it expects to fail soon"],
    };
    Health { critical, log: None }
}

fn read(log: &[u8; nvme::HEALTH_LOG]) -> Health {
    // Counters have 128 bits, of which the lower half lasts for longer than any disk.
    let counter = |at: usize| u64::from_le_bytes(std::array::from_fn(|n| log[at + n]));
    let warnings = [
        "spare capacity is low",
        "temperature is out of range",
        "reliability is degraded",
        "the medium is read-only",
        "the backup of volatile memory has failed",
        "persistent memory is unreliable",
    ];
    Health {
        critical: (0..).zip(warnings).filter(|(bit, _)| log[0] >> bit & 1 == 1).map(|(_, w)| w).collect(),
        log: Some(Log {
            // In kelvins.
            temperature_celsius: i32::from(u16::from_le_bytes([log[1], log[2]])) - 273,
            available_spare_percent: log[3],
            percentage_used: log[5],
            power_on_hours: counter(128),
            unsafe_shutdowns: counter(144),
            media_errors: counter(160),
        }),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use serde_json::json;

    use super::*;
    use crate::disk::{Attachment, Identity};

    #[test]
    fn the_log_is_read_in_its_units() {
        let mut log = [0; nvme::HEALTH_LOG];
        log[..6].copy_from_slice(&[0b0000_0101, 0x2d, 0x01, 9, 10, 101]);
        log[128..130].copy_from_slice(&[0x10, 0x27]);
        log[144] = 3;
        log[160] = 7;
        let expected = Health {
            critical: vec!["spare capacity is low", "reliability is degraded"],
            log: Some(Log {
                temperature_celsius: 28,
                available_spare_percent: 9,
                percentage_used: 101,
                power_on_hours: 10_000,
                unsafe_shutdowns: 3,
                media_errors: 7,
            }),
        };
        assert_eq!(read(&log), expected);
    }

    #[test]
    fn both_kinds_of_disk_are_told_under_the_same_keys() {
        let mut log = [0; nvme::HEALTH_LOG];
        log[1..6].copy_from_slice(&[0x2d, 0x01, 100, 10, 1]);
        assert_eq!(
            serde_json::to_value(read(&log)).unwrap(),
            json!({
                "critical": [], "temperatureCelsius": 28, "availableSparePercent": 100, "percentageUsed": 1,
                "powerOnHours": 0, "unsafeShutdowns": 0, "mediaErrors": 0,
            })
        );
        assert_eq!(serde_json::to_value(judged(Verdict::Good)).unwrap(), json!({"critical": []}));
        let failing = json!({"critical": ["it expects to fail soon"]});
        assert_eq!(serde_json::to_value(judged(Verdict::Failing)).unwrap(), failing);
    }

    fn disk(transport: Option<Transport>) -> Disk {
        Disk {
            name: "sda".into(),
            path: "/nonesuch".into(),
            size: 1 << 40,
            logical_sector: 512,
            dev: (8, 0),
            rotational: true,
            identity: Identity::default(),
            attachment: Attachment { transport, hctl: None },
            other_paths: Vec::new(),
            refusal: None,
        }
    }

    #[test]
    fn only_disks_that_say_what_they_are_are_asked() {
        use Transport::*;
        assert_eq!(way(&disk(Some(Nvme))), Some(Way::Nvme));
        assert_eq!(way(&disk(Some(Sata))), Some(Way::Ata));
        for silent in [Some(Usb), Some(Scsi), Some(Sas), Some(Virtio), Some(Mmc), Some(Fc), Some(Iscsi), None]
        {
            assert_eq!(way(&disk(silent)), None, "{silent:?}");
        }
    }

    #[test]
    fn a_disk_that_cannot_be_asked_says_nothing() {
        let disks = [disk(Some(Transport::Sata)), disk(None)];
        assert_eq!(Question::put(disks.iter()).answers(), Answers::default());
    }

    #[test]
    fn a_disk_that_hangs_is_noted_and_the_others_are_heard() {
        let at = |path: &str| Disk { path: path.into(), ..disk(Some(Transport::Sata)) };
        let disks = ["/dev/sda", "/dev/sdb", "/dev/sdc"].map(at);
        let (hang, hung) = channel::<()>();
        let hung = Arc::new(Mutex::new(hung));
        let (answered, all_others) = channel();
        let answer = move |_, path: &Path| {
            if path == Path::new("/dev/sda") {
                let _ = hung.lock().unwrap().recv();
            }
            let _ = answered.send(());
            Ok(Some(judged(Verdict::Good)))
        };
        let question = Question::put_to(disks.iter(), WAIT, answer);
        for _ in 0..2 {
            all_others.recv().unwrap();
        }
        let question = Question { until: Instant::now() + Duration::from_millis(500), ..question };
        let answers = question.answers();
        assert_eq!([0, 1, 2].map(|n| answers.of(&disks[n]).is_some()), [false, true, true]);
        assert_eq!(answers.notes().collect::<Vec<_>>(), ["/dev/sda did not tell its health within 15 s"]);
        drop(hang);
    }
}
