//! The partitions of the target, and what they hold.

use std::path::Path;

use super::SeedError;
use super::filesystem::{self, FileSystem, Kind};
use crate::disk::{Partition, Target};
use crate::mount::Node;

/// A partition and what it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) partition: Partition,
    /// [`None`] when it is none a seed can be planted on.
    pub(super) filesystem: Option<FileSystem>,
}

impl Place {
    /// Whether it holds one of these file systems, so labelled.
    pub(super) fn is(&self, kinds: &[Kind], labels: &[&str]) -> bool {
        self.filesystem
            .as_ref()
            .is_some_and(|f| kinds.contains(&f.kind) && labels.contains(&f.label.as_str()))
    }
}

/// Looks at every partition of the target; `work` is a writable directory on a tmpfs.
pub(super) fn survey(target: &dyn Target, work: &Path) -> Result<Vec<Place>, SeedError> {
    let mut places = Vec::new();
    for partition in target.partitions()? {
        let node = Node::make(work, &partition)
            .map_err(SeedError::io("making a device node for", &partition.name))?;
        // A partition that cannot be read is merely not the one.
        let filesystem = node.head(filesystem::HEAD).ok().and_then(|head| filesystem::probe(&head));
        places.push(Place { partition, filesystem });
    }
    Ok(places)
}

/// Why no place would do: none holds what is `wanted`, most of all under this label.
pub(super) fn not_found(
    target: &dyn Target,
    places: &[Place],
    label: &'static str,
    wanted: &'static str,
) -> SeedError {
    SeedError::NotFound { label, disk: target.name().to_owned(), found: listed(places), wanted }
}

/// What there is, for a message: `vda1 (FAT "ESP"), vda2`.
fn listed(places: &[Place]) -> String {
    let one = |place: &Place| match &place.filesystem {
        Some(f) => format!("{} ({} {:?})", place.partition.name, f.kind, f.label),
        None => place.partition.name.clone(),
    };
    if places.is_empty() {
        "no partitions".to_owned()
    } else {
        places.iter().map(one).collect::<Vec<_>>().join(", ")
    }
}

/// A partition for tests: its name in the GPT, and its file system with the label.
#[cfg(test)]
type Found<'a> = (&'a str, Option<(Kind, &'a str)>);

/// These partitions in their order, the first of them number 1.
#[cfg(test)]
pub(super) fn places(found: &[Found<'_>]) -> Vec<Place> {
    let place = |number: u64, (name, filesystem): &Found<'_>| Place {
        partition: Partition {
            name: format!("vda{number}"),
            number,
            dev: (254, number),
            size: 1 << 20,
            label: Some((*name).to_owned()),
        },
        filesystem: filesystem.map(|(kind, label)| FileSystem {
            kind,
            label: label.to_owned(),
            sector: None,
        }),
    };
    (1..).zip(found).map(|(number, found)| place(number, found)).collect()
}
