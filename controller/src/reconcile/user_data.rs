//! The user-data that was stored for one machine goes with it.

use farrier_shared::contract::HostKey;
use farrier_shared::lifecycle::machine::DELETE_FOR_MOVE;
use farrier_shared::resource::secret::USER_DATA_OF;
use farrier_shared::resource::{Beskar7Machine, Secret};

use super::{PassError, Shell};
use crate::store::{Scope, StoreError, Term};

/// Machines that must be found to know that another one uses the Secret.
const TELLS_SHARED: usize = 2;

impl Shell {
    /// Removes the Secret of a machine that is about to go, if it was marked as made for that machine and no other
    /// uses it. What an operator stored is the operator's to remove, and a machine that moves takes nothing along.
    pub(super) async fn remove_user_data(&self, machine: &Beskar7Machine) -> Result<(), PassError> {
        let store = &self.ctx.store;
        let Some(bootstrap) = &machine.spec.bootstrap else { return Ok(()) };
        if machine.metadata.annotations.contains_key(DELETE_FOR_MOVE) {
            return Ok(());
        }
        let namespace = &machine.metadata.namespace;
        let key = HostKey::new(namespace.clone(), bootstrap.data_secret_name.clone());
        let Some(secret) = store.get::<Secret>(&key).await? else { return Ok(()) };
        let made_for = secret.metadata.annotations.get(USER_DATA_OF).map(String::as_str);
        let scope = Scope::Namespace { namespace: namespace.clone(), after: None };
        let users = store.find::<Beskar7Machine>(Term::Uses(&key.name), scope, TELLS_SHARED).await?;
        let shared = users.iter().any(|other| other.metadata.name != machine.metadata.name);
        if made_for != Some(machine.metadata.name.as_str()) || shared {
            return Ok(());
        }
        match store.delete::<Secret>(&key).await {
            Ok(()) => tracing::info!(machine = %machine.metadata.key(), secret = %key, "user-data removed"),
            Err(StoreError::NotFound { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
}
