//! The contract's way (section 9): two files in the partition labelled COS_OEM.

use std::fmt;
use std::io;
use std::path::PathBuf;

use farrier_shared::contract::ProviderId;

use super::mount::{Mounted, Node};
use super::plant::{SeedFile, plant};
use super::{Seed, SeedError, ext};
use crate::callback::UserData;
use crate::disk::{Partition, Target};

const LABEL: &str = "COS_OEM";
const USER_DATA: &str = "99_beskar7.yaml";
const PROVIDER_ID: &str = "beskar7/provider-id";

/// The user-data verbatim and the provider id without a newline, both for root alone.
pub struct CosOem {
    user_data: UserData,
    provider_id: ProviderId,
    work: PathBuf,
}

impl fmt::Debug for CosOem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CosOem({}, {} bytes of user-data)", self.provider_id, self.user_data.len())
    }
}

impl CosOem {
    /// Plants these; `work` is a writable directory on a tmpfs, such as `/run`.
    pub fn new(user_data: UserData, provider_id: ProviderId, work: PathBuf) -> Self {
        Self { user_data, provider_id, work }
    }

    /// The first partition, by number, whose ext file system is so labelled; else the first whose GPT name it is and
    /// that holds an ext file system.
    fn find(&self, target: &dyn Target) -> Result<(Partition, Node), SeedError> {
        let partitions = target.partitions()?;
        let mut by_name = None;
        let mut found = Vec::new();
        for partition in partitions {
            let node = Node::make(&self.work, &partition)
                .map_err(failed("making a device node for", &partition.name))?;
            let mut head = [0; ext::HEAD];
            // A partition too small to hold a superblock, or unreadable, is merely not the one.
            let label = node.read_head(&mut head).ok().and_then(|()| ext::label(&head));
            found.push(match &label {
                Some(label) => format!("{} (ext {label:?})", partition.name),
                None => partition.name.clone(),
            });
            match label {
                Some(label) if label == LABEL => return Ok((partition, node)),
                Some(_) if by_name.is_none() && partition.label.as_deref() == Some(LABEL) => {
                    by_name = Some((partition, node));
                }
                _ => {}
            }
        }
        by_name.ok_or_else(|| SeedError::NotFound {
            label: LABEL,
            disk: target.name().to_owned(),
            found: if found.is_empty() { "no partitions".to_owned() } else { found.join(", ") },
        })
    }
}

impl Seed for CosOem {
    fn plant(&self, target: &dyn Target) -> Result<(), SeedError> {
        let (partition, node) = self.find(target)?;
        let mounted = Mounted::new(&node, &self.work).map_err(failed("mounting", &partition.name))?;
        let provider_id = self.provider_id.to_string();
        let files = [
            SeedFile { path: USER_DATA, content: &self.user_data },
            SeedFile { path: PROVIDER_ID, content: provider_id.as_bytes() },
        ];
        plant(&mounted.path, &files).map_err(|error| failed("writing", &error.path)(error.source))?;
        mounted.unmount().map_err(failed("unmounting", &partition.name))?;
        tracing::info!(partition = partition.name, "user-data and provider id are in place");
        Ok(())
    }
}

fn failed(action: &'static str, what: &str) -> impl FnOnce(io::Error) -> SeedError {
    let what = what.to_owned();
    move |source| SeedError::Io { label: LABEL, action, what, source }
}
