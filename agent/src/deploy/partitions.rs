//! Has the kernel see the partitions of the image just written.

use std::thread;
use std::time::Instant;

use super::{DeployError, Timing};
use crate::disk::{BlockDevice, Target};

/// Re-reads the table until the kernel shows every partition in `expected`, by number.
///
/// Something may look into the disk for a moment and keep the kernel from dropping the old partitions, and the new
/// ones come with a delay: both are waited for, with a deadline.
pub(super) fn settle(
    target: &dyn Target,
    device: &dyn BlockDevice,
    expected: &[u64],
    timing: &Timing,
) -> Result<(), DeployError> {
    let start = Instant::now();
    let mut reread = device.reread_partitions();
    loop {
        let seen = target.partitions()?;
        let missing: Vec<String> = expected
            .iter()
            .filter(|number| !seen.iter().any(|p| p.number == **number))
            .map(u64::to_string)
            .collect();
        // An old partition of the same number is no proof: the re-read must have worked as well.
        if missing.is_empty() && reread.is_ok() {
            return Ok(());
        }
        if start.elapsed() >= timing.partitions {
            let cause = reread.err().map_or_else(|| "no error".to_owned(), |e| e.to_string());
            let missing = if missing.is_empty() { "as they are now".to_owned() } else { missing.join(", ") };
            return Err(DeployError::Partitions {
                disk: target.name().to_owned(),
                missing,
                seconds: start.elapsed().as_secs(),
                cause,
            });
        }
        thread::sleep(timing.partition_poll);
        if reread.is_err() {
            reread = device.reread_partitions();
        }
    }
}
