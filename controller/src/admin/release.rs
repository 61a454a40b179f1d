//! Giving up a machine without its host's BMC.

use axum::http::StatusCode;
use farrier_shared::contract::HostKey;
use farrier_shared::lifecycle::machine::FORCE_RELEASE;
use farrier_shared::resource::Beskar7Machine;
use serde::Deserialize;

use super::error::ApiError;
use super::kind::Kind;
use crate::store::{Store, StoreError};

/// How an object is to be deleted.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct How {
    /// Let go of a machine's host without asking its BMC.
    #[serde(default, rename = "forceRelease")]
    force_release: bool,
}

impl How {
    /// What comes before the deletion.
    pub(super) async fn prepare(self, store: &Store, kind: Kind, key: &HostKey) -> Result<(), ApiError> {
        match kind {
            _ if !self.force_release => Ok(()),
            Kind::Machine => without_bmc(store, key).await,
            Kind::Host | Kind::Secret => {
                Err(ApiError::invalid("forceRelease", format!("a {kind} has no host"), "leave it out"))
            }
        }
    }
}

/// How often the mark is tried anew when the controller writes the machine meanwhile.
const ATTEMPTS: u32 = 8;

/// Marks the machine to let go of its host without asking the BMC. Also one that is being deleted already: that is
/// when an operator finds out that the BMC does not answer.
async fn without_bmc(store: &Store, key: &HostKey) -> Result<(), ApiError> {
    for _ in 0..ATTEMPTS {
        let Some(mut machine) = store.get::<Beskar7Machine>(key).await? else {
            return Err(ApiError::not_found(format!("machine {key} does not exist")));
        };
        machine.metadata.annotations.insert(FORCE_RELEASE.to_owned(), "true".to_owned());
        match store.update(&machine).await {
            Ok(_) => return Ok(()),
            // Removed or changed since: look again.
            Err(StoreError::Conflict { .. } | StoreError::NotFound { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(ApiError::new(StatusCode::CONFLICT, "", format!("machine {key} keeps changing"), "try again"))
}

#[cfg(test)]
mod tests {
    use farrier_shared::lifecycle::machine::MACHINE_FINALIZER;

    use super::*;
    use crate::fixture::machine;

    #[tokio::test]
    async fn a_machine_is_marked_whether_its_deletion_has_begun_or_not() {
        let store = Store::in_memory().unwrap();
        let mut held = machine("m1");
        held.metadata.finalizers.push(MACHINE_FINALIZER.to_owned());
        let key = held.metadata.key();
        store.create(held).await.unwrap();
        store.delete::<Beskar7Machine>(&key).await.unwrap();
        let how = How { force_release: true };
        for _ in 0..2 {
            how.prepare(&store, Kind::Machine, &key).await.unwrap();
            let stored: Beskar7Machine = store.get(&key).await.unwrap().unwrap();
            assert_eq!(stored.metadata.annotations.get(FORCE_RELEASE).map(String::as_str), Some("true"));
            assert!(stored.metadata.deletion_timestamp.is_some());
        }
        let absent = HostKey::new(key.namespace.clone(), "other".parse().unwrap());
        for (kind, status) in
            [(Kind::Machine, StatusCode::NOT_FOUND), (Kind::Host, StatusCode::UNPROCESSABLE_ENTITY)]
        {
            assert_eq!(how.prepare(&store, kind, &absent).await.unwrap_err().status, status, "{kind}");
            assert!(How::default().prepare(&store, kind, &absent).await.is_ok());
        }
    }
}
