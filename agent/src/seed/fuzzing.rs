//! The first bytes of partitions.

use super::filesystem::probe;

/// What a partition that begins with these bytes holds.
pub fn file_system(bytes: &[u8]) {
    let Some(found) = probe(bytes) else { return };
    // Three bytes stand for each that is no UTF-8.
    assert!(found.label.len() <= 3 * 256, "{found:?}");
    assert!(found.sector.is_none_or(|sector| sector.is_power_of_two() && sector >= 512), "{found:?}");
}
