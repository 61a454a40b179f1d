//! OpenStack's config drive, as cloud-init, Flatcar and others read it: a file system labelled config-2.

use std::path::PathBuf;

use serde_json::json;

use super::filesystem::Kind;
use super::place::{not_found, survey};
use super::{Payload, Seed, SeedError, SeedFile, write};
use crate::disk::Target;

/// Both are read by cloud-init; FAT tools like to write the second.
const LABELS: [&str; 2] = ["config-2", "CONFIG-2"];
const META_DATA: &str = "openstack/latest/meta_data.json";
const USER_DATA: &str = "openstack/latest/user_data";

/// `user_data` verbatim, and `meta_data.json` with a lasting UUID, host name and provider id.
#[derive(Debug)]
pub struct ConfigDrive {
    payload: Payload,
    work: PathBuf,
}

impl ConfigDrive {
    /// Plants these; `work` is a writable directory on a tmpfs, such as `/run`.
    pub fn new(payload: Payload, work: PathBuf) -> Self {
        Self { payload, work }
    }
}

fn meta_data(payload: &Payload) -> String {
    let name = payload.hostname();
    let provider_id = payload.provider_id.to_string();
    // Readers want a UUID here, which a provider id is not.
    json!({
        "uuid": payload.uuid(),
        "name": name,
        "hostname": name,
        "launch_index": 0,
        "meta": { "provider-id": provider_id },
    })
    .to_string()
}

impl Seed for ConfigDrive {
    fn plant(&self, target: &dyn Target) -> Result<(), SeedError> {
        let places = survey(target, &self.work)?;
        let place = places.iter().find(|p| p.is(&[Kind::Fat, Kind::Ext], &LABELS));
        let place =
            place.ok_or_else(|| not_found(target, &places, LABELS[0], "a FAT or ext2/3/4 so labelled"))?;
        let meta_data = meta_data(&self.payload);
        let files = [
            SeedFile { path: META_DATA, content: meta_data.as_bytes() },
            SeedFile { path: USER_DATA, content: &self.payload.user_data },
        ];
        write(place, &self.work, &files)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::callback::UserData;

    #[test]
    fn instance_and_name_are_the_hosts() {
        let provider_id = "b7://default/node-1".parse().unwrap();
        let payload = Payload { user_data: UserData::default(), provider_id };
        let parsed: serde_json::Value = serde_json::from_str(&meta_data(&payload)).unwrap();
        assert_eq!(parsed["uuid"], payload.uuid());
        assert_eq!((parsed["hostname"].as_str(), parsed["name"].as_str()), (Some("node-1"), Some("node-1")));
        assert_eq!(parsed["meta"]["provider-id"], "b7://default/node-1");
    }
}
