//! Lets go of what the kernel built on a disk by itself: md arrays are stopped, anything else is named and refused.
//!
//! This image assembles nothing, but a kernel with built-in md does so when it finds partitions of type FDh, and an
//! array that is running writes its superblock back over whatever is put in its place.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::discover::attribute;
use super::{DiskError, Roots};

/// Stops the md arrays on this disk and its partitions, the uppermost first.
///
/// # Errors
/// [`DiskError::Held`] for a holder that is no md array (device mapper: LVM, LUKS, multipath), and for an array that
/// does not stop.
pub(super) fn release(roots: &Roots, disk: &str) -> Result<(), DiskError> {
    stop_above(roots, disk, disk, &mut BTreeSet::new())
}

fn stop_above(
    roots: &Roots,
    disk: &str,
    name: &str,
    stopped: &mut BTreeSet<String>,
) -> Result<(), DiskError> {
    let block = roots.block(name);
    let mut holders = names(&block.join("holders"));
    for partition in names(&block).iter().filter(|entry| block.join(entry).join("partition").exists()) {
        holders.extend(names(&block.join(partition).join("holders")));
    }
    for holder in holders {
        // One array holds several partitions of a disk; and a circle, which no sane kernel shows, ends here.
        if !stopped.insert(holder.clone()) {
            continue;
        }
        stop_above(roots, disk, &holder, stopped)?;
        let above = roots.block(&holder);
        let held = |why: String| DiskError::Held { disk: disk.to_owned(), holder: holder.clone(), why };
        if !above.join("md").is_dir() {
            let what = attribute(&above, "dm/name").map(|name| format!("device mapper volume {name}"));
            return Err(held(what.unwrap_or_else(|| "not an md array".to_owned())));
        }
        // What the STOP_ARRAY request does (kernel: Documentation/admin-guide/md.rst).
        fs::write(above.join("md/array_state"), "clear").map_err(|e| held(format!("does not stop: {e}")))?;
        tracing::warn!(disk, array = holder, "stopped an md array on the target disk");
    }
    Ok(())
}

fn names(dir: &Path) -> Vec<String> {
    let Ok(list) = fs::read_dir(dir) else { return Vec::new() };
    let mut names: Vec<String> =
        list.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
