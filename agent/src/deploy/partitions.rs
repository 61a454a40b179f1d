//! The kernel's view of the partitions: of a disk whose table is not yet written, and of one whose table is.

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::{DeployError, Timing};
use crate::disk::table::Extent;
use crate::disk::{Access, BlockDevice, DiskError, Partition, Target};

/// Shows the kernel the partitions of a disk that has no table. Those that overlap one before them stay hidden: what
/// lies in two places at once is no place for a seed.
pub(super) fn show(
    target: &dyn Target,
    device: &dyn BlockDevice,
    partitions: &[Extent],
    timing: &Timing,
) -> Result<(), DeployError> {
    let wait = Wait::new(target, timing);
    // There is no table, so this has the kernel forget the partitions of an earlier system.
    let mut reread = device.reread_partitions();
    while let Err(cause) = reread {
        wait.pause("as they are now", &cause)?;
        reread = device.reread_partitions();
    }
    let sector = u64::from(device.logical_sector());
    for Extent { number, first, last, .. } in partitions {
        match device.add_partition(*number, first * sector, (last - first + 1) * sector) {
            Err(error) if error.raw_os_error() == Some(nix::libc::EBUSY) => {
                tracing::warn!(
                    disk = device.name(),
                    number,
                    "the partition overlaps another and is not shown"
                );
            }
            added => added.map_err(|cause| wait.over(&number.to_string(), &cause))?,
        }
    }
    Ok(())
}

/// Re-reads the table until the kernel shows every partition in `expected`, by number.
///
/// Something may look into the disk for a moment and keep the kernel from dropping the old partitions, and the new
/// ones come with a delay: both are waited for, with a deadline.
pub(super) fn settle(
    target: &dyn Target,
    device: &dyn BlockDevice,
    expected: &[Extent],
    timing: &Timing,
) -> Result<(), DeployError> {
    let wait = Wait::new(target, timing);
    let mut reread = device.reread_partitions();
    loop {
        let seen = target.partitions()?;
        let missing: Vec<String> = expected
            .iter()
            .filter(|extent| !seen.iter().any(|p| p.number == extent.number))
            .map(|extent| extent.number.to_string())
            .collect();
        // An old partition of the same number is no proof: the re-read must have worked as well.
        match (&reread, missing.is_empty()) {
            (Ok(()), true) => return Ok(()),
            (Ok(()), false) => wait.pause(&missing.join(", "), &io::Error::other("no error"))?,
            (Err(cause), _) => {
                wait.pause("as they are now", cause)?;
                reread = device.reread_partitions();
            }
        }
    }
}

/// Waiting for the kernel.
struct Wait<'a> {
    disk: &'a str,
    start: Instant,
    limit: Duration,
    poll: Duration,
}

impl<'a> Wait<'a> {
    fn new(target: &'a dyn Target, timing: &Timing) -> Self {
        let (limit, poll) = (timing.partitions, timing.partition_poll);
        Self { disk: target.name(), start: Instant::now(), limit, poll }
    }

    /// Waits for a moment, unless it is enough.
    fn pause(&self, missing: &str, cause: &io::Error) -> Result<(), DeployError> {
        if self.start.elapsed() >= self.limit {
            return Err(self.over(missing, cause));
        }
        thread::sleep(self.poll);
        Ok(())
    }

    fn over(&self, missing: &str, cause: &io::Error) -> DeployError {
        DeployError::Partitions {
            disk: self.disk.to_owned(),
            missing: missing.to_owned(),
            seconds: self.start.elapsed().as_secs(),
            cause: cause.to_string(),
        }
    }
}

/// The target with the names of its partitions, which the kernel knows only of tables that it has read.
pub(super) struct Named<'a> {
    pub(super) target: &'a dyn Target,
    pub(super) partitions: &'a [Extent],
}

impl Target for Named<'_> {
    fn name(&self) -> &str {
        self.target.name()
    }

    fn open(&self, access: Access) -> Result<Arc<dyn BlockDevice>, DiskError> {
        self.target.open(access)
    }

    fn partitions(&self) -> Result<Vec<Partition>, DiskError> {
        let mut seen = self.target.partitions()?;
        for partition in &mut seen {
            let own = self.partitions.iter().find(|extent| extent.number == partition.number);
            let name = own.and_then(|extent| extent.name.clone());
            partition.label = partition.label.take().or(name);
        }
        Ok(seen)
    }
}
