//! Loads drivers and waits until the hardware the run needs has appeared.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use farrier_shared::contract::options::DiskHints;
use farrier_shared::contract::{DiskPin, MacAddress};

use super::modules::{Coldplug, Index, Insert, Kernel, LATER};
use super::mounts;
use crate::disk::{self, DiskError, Roots, Wish};
use crate::net::links;

/// Modules to load whatever the hardware: file systems above all.
const LIST: &str = "etc/farrier/modules.load";
/// How long named hardware is waited for.
const NAMED_WAIT: Duration = Duration::from_secs(60);
/// How long any hardware is waited for.
const ANY_WAIT: Duration = Duration::from_secs(30);
/// How long nothing new must appear before the picture is taken as whole.
const QUIET: Duration = Duration::from_secs(2);
/// The same when a storage controller scans its bus disk by disk.
const SLOW_QUIET: Duration = Duration::from_secs(6);
/// Between looks.
const PAUSE: Duration = Duration::from_millis(200);
/// Hosts that show all their disks at once, or within [`QUIET`].
const QUICK_HOSTS: [&str; 4] = ["ahci", "ata_piix", "virtio_scsi", "pata_legacy"];

/// Hardware the run was told of by name.
#[derive(Clone, Debug)]
pub struct Named {
    /// The interface the firmware booted from.
    pub nic: Option<MacAddress>,
    /// The disk the command line pins.
    pub disk: Option<DiskPin>,
    /// What the command line wants a disk to be like.
    pub hints: Option<DiskHints>,
}

/// One look at the hardware.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Look {
    /// Physical interfaces.
    nics: usize,
    /// Disks that hold anything.
    disks: usize,
    /// Whether each named thing is there; [`None`] when none is named.
    named_nic: Option<bool>,
    named_disk: Option<bool>,
    /// Whether some controller is slow to show its disks.
    slow: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Verdict {
    Wait,
    Ready,
    /// Go on without; the texts say without what.
    Missing(Vec<&'static str>),
}

/// Whether to go on. `quiet` is how long nothing changed, `elapsed` how long we have waited in all.
fn judge(look: &Look, quiet: Duration, elapsed: Duration) -> Verdict {
    let mut missing = Vec::new();
    let mut note = |absent: bool, what| {
        if absent {
            missing.push(what);
        }
    };
    note(look.named_nic == Some(false), "the boot interface");
    note(look.named_disk == Some(false), "the disk asked for");
    let named_missing = look.named_nic == Some(false) || look.named_disk == Some(false);
    note(look.nics == 0, "any network interface");
    note(look.disks == 0, "any disk");
    let needed = if look.slow { SLOW_QUIET } else { QUIET };
    let limit = if named_missing { NAMED_WAIT } else { ANY_WAIT };
    match (missing.is_empty(), elapsed >= limit) {
        (true, _) if quiet >= needed => Verdict::Ready,
        (true, true) => Verdict::Ready,
        (false, true) => Verdict::Missing(missing),
        _ => Verdict::Wait,
    }
}

/// Loads the drivers of everything there is and waits for the hardware. Blocks; bounded by a minute and a bit.
pub fn bring_up(root: &Path, kernel_release: &str, named: &Named) {
    let index = Index::read(&root.join("lib/modules").join(kernel_release));
    if index.is_empty() {
        tracing::info!(kernel = kernel_release, "no kernel modules in this image");
    }
    let mut coldplug = Coldplug::new(index, Kernel);
    coldplug.load_list(&root.join(LIST));
    mounts::mount_firmware_variables(root);
    settle(root, &mut coldplug, named);
}

/// Loads one module of this system by name, with all it needs. An image without it is told by whoever needed it.
pub fn load_one(name: &str) {
    load_all(&[name]);
}

/// Loads what it takes to talk to this machine's management controller. Blocks, and for minutes where that hangs.
pub fn load_ipmi() {
    load_all(&["ipmi_devintf"]);
    load_all(&LATER);
}

fn load_all(names: &[&str]) {
    let index = Index::read(&Path::new("/lib/modules").join(super::kernel_release()));
    let mut coldplug = Coldplug::new(index, Kernel);
    for name in names {
        coldplug.load(name);
    }
}

fn settle<I: Insert>(root: &Path, coldplug: &mut Coldplug<I>, named: &Named) {
    let start = Instant::now();
    let mut changed = start;
    let mut last: Option<Look> = None;
    loop {
        let fresh = coldplug.pass(&root.join("sys"));
        let look = look(root, named);
        if fresh > 0 || last.as_ref() != Some(&look) {
            changed = Instant::now();
        }
        match judge(&look, changed.elapsed(), start.elapsed()) {
            Verdict::Wait => {}
            verdict => {
                if let Verdict::Missing(what) = verdict {
                    tracing::warn!(
                        missing = what.join(", "),
                        "hardware did not appear; is its driver in the image?"
                    );
                }
                tracing::info!(
                    modules = coldplug.loaded(),
                    refused = coldplug.refused.len(),
                    nics = look.nics,
                    disks = look.disks,
                    took = ?start.elapsed(),
                    "drivers are loaded"
                );
                return;
            }
        }
        last = Some(look);
        thread::sleep(PAUSE);
    }
}

fn look(root: &Path, named: &Named) -> Look {
    let roots = Roots { sys: root.join("sys"), dev: root.join("dev"), proc: root.join("proc") };
    let links = links::physical(root);
    let disks = disk::discover(&roots).unwrap_or_default();
    let real =
        disks.iter().filter(|d| d.size > 0 && d.refusal.as_ref() != Some(&disk::Refusal::Virtual)).count();
    Look {
        nics: links.len(),
        disks: real,
        named_nic: named.nic.map(|mac| links.iter().any(|l| l.mac == mac)),
        named_disk: (named.disk.is_some() || named.hints.is_some()).then(|| {
            let wish = Wish { pin: named.disk.as_ref(), hints: named.hints.as_ref(), required: 0 };
            // A pin that names something unsuitable is there all the same: waiting would not mend it.
            let chosen = disk::choose(&disks, &wish, &roots);
            !matches!(chosen, Err(DiskError::NotFound { .. } | DiskError::NoneMatches { .. }))
        }),
        slow: has_slow_host(root),
    }
}

fn has_slow_host(root: &Path) -> bool {
    let Ok(hosts) = std::fs::read_dir(root.join("sys/class/scsi_host")) else { return false };
    hosts.flatten().any(|host| {
        let driver = std::fs::read_to_string(host.path().join("proc_name")).unwrap_or_default();
        !QUICK_HOSTS.contains(&driver.trim())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn look(nics: usize, disks: usize) -> Look {
        Look { nics, disks, named_nic: None, named_disk: None, slow: false }
    }

    #[test]
    fn a_whole_picture_is_ready_once_it_is_quiet() {
        assert_eq!(judge(&look(1, 1), SECOND, SECOND), Verdict::Wait);
        assert_eq!(judge(&look(1, 1), QUIET, 3 * SECOND), Verdict::Ready);
    }

    #[test]
    fn a_slow_controller_gets_more_quiet() {
        let slow = Look { slow: true, ..look(1, 1) };
        assert_eq!(judge(&slow, QUIET, 10 * SECOND), Verdict::Wait);
        assert_eq!(judge(&slow, SLOW_QUIET, 10 * SECOND), Verdict::Ready);
    }

    #[test]
    fn hardware_that_keeps_changing_does_not_hold_the_run_for_ever() {
        assert_eq!(judge(&look(1, 1), Duration::ZERO, ANY_WAIT), Verdict::Ready);
    }

    #[test]
    fn named_hardware_is_waited_for_longer_and_then_told_of() {
        let named = Look { named_nic: Some(false), named_disk: Some(true), ..look(1, 1) };
        assert_eq!(judge(&named, 40 * SECOND, 40 * SECOND), Verdict::Wait);
        assert_eq!(judge(&named, NAMED_WAIT, NAMED_WAIT), Verdict::Missing(vec!["the boot interface"]));
        assert_eq!(judge(&look(1, 0), ANY_WAIT, ANY_WAIT), Verdict::Missing(vec!["any disk"]));
    }
}
