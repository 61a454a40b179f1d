//! The contract's way (section 9): two files in the partition labelled COS_OEM.

use std::path::PathBuf;

use super::filesystem::Kind;
use super::place::{Place, not_found, survey};
use super::{PROVIDER_ID, Payload, Seed, SeedError, SeedFile, write};
use crate::disk::Target;

const LABEL: &str = "COS_OEM";
const USER_DATA: &str = "99_beskar7.yaml";

/// The user-data verbatim and the provider id without a newline, both for root alone.
#[derive(Debug)]
pub struct CosOem {
    payload: Payload,
    work: PathBuf,
}

impl CosOem {
    /// Plants these; `work` is a writable directory on a tmpfs, such as `/run`.
    pub fn new(payload: Payload, work: PathBuf) -> Self {
        Self { payload, work }
    }
}

/// The first partition, by number, whose ext file system is so labelled; else the first whose GPT name it is and
/// that holds an ext file system.
fn choose(places: &[Place]) -> Option<&Place> {
    let ext = |p: &&Place| p.filesystem.as_ref().is_some_and(|f| f.kind == Kind::Ext);
    let by_name = |p: &&Place| ext(p) && p.partition.label.as_deref() == Some(LABEL);
    places.iter().find(|p| p.is(&[Kind::Ext], &[LABEL])).or_else(|| places.iter().find(by_name))
}

impl Seed for CosOem {
    fn plant(&self, target: &dyn Target) -> Result<(), SeedError> {
        let places = survey(target, &self.work)?;
        let place =
            choose(&places).ok_or_else(|| not_found(target, &places, LABEL, "an ext2/3/4 so labelled"))?;
        let provider_id = self.payload.provider_id.to_string();
        let files = [
            SeedFile { path: USER_DATA, content: &self.payload.user_data },
            SeedFile { path: PROVIDER_ID, content: provider_id.as_bytes() },
        ];
        write(place, &self.work, &files).map_err(|error| error.at(LABEL))
    }
}

#[cfg(test)]
mod tests {
    use super::super::place::places;
    use super::*;

    #[test]
    fn the_file_systems_label_comes_before_the_partitions_name() {
        for (found, chosen) in [
            (&[("", None), ("COS_OEM", Some((Kind::Ext, "x"))), ("", Some((Kind::Ext, LABEL)))][..], Some(3)),
            (&[("COS_OEM", Some((Kind::Ext, ""))), ("COS_OEM", Some((Kind::Ext, "")))][..], Some(1)),
            (&[("COS_OEM", Some((Kind::Fat, LABEL))), ("COS_OEM", None)][..], None),
            (&[][..], None),
        ] {
            let places = places(found);
            assert_eq!(choose(&places).map(|p| p.partition.number), chosen, "{found:?}");
        }
    }
}
