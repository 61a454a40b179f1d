//! Reaching a host's BMC, and asking it how things are.

use std::sync::Arc;
use std::time::Duration;

use farrier_shared::contract::HostKey;
use farrier_shared::lifecycle::BmcObservation;
use farrier_shared::lifecycle::fault::Transient;
use farrier_shared::resource::{PhysicalHost, Secret};

use super::{Key, Next, PassError, Shell};
use crate::bmc::access::{AccessError, authorize};
use crate::bmc::{Bmc, BmcError};
use crate::store::StoreError;

/// The longest look at a BMC: each exchange is bounded already, their number is not known beforehand.
const LOOK: Duration = Duration::from_secs(120);

/// Why a BMC was not or could not be asked.
#[derive(Debug, thiserror::Error)]
pub(super) enum AskError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Access(#[from] AccessError),
    #[error(transparent)]
    Bmc(#[from] BmcError),
}

impl Shell {
    /// A client for the host's BMC, if its Secret allows one.
    pub(super) async fn connect(&self, host: &PhysicalHost) -> Result<Arc<dyn Bmc>, AskError> {
        let connection = &host.spec.redfish_connection;
        let key = |name: &farrier_shared::contract::Name| {
            HostKey::new(host.metadata.namespace.clone(), name.clone())
        };
        let store = &self.ctx.store;
        let secret = store.get::<Secret>(&key(&connection.credentials_secret_ref)).await?;
        let ca = match &connection.ca_bundle_secret_ref {
            Some(name) => store.get::<Secret>(&key(name)).await?,
            None => None,
        };
        let access = authorize(connection, secret.as_ref(), ca.as_ref())?;
        Ok(self.ctx.bmc.connect(&access).await?)
    }

    async fn ask(&self, host: &PhysicalHost) -> Result<BmcObservation, StoreError> {
        let look = async { Ok(self.connect(host).await?.system_info().await?) };
        match tokio::time::timeout(LOOK, look).await {
            Ok(Ok(facts)) => Ok(BmcObservation::Up(facts)),
            Ok(Err(AskError::Store(error))) => Err(error),
            Ok(Err(AskError::Access(error))) => Ok(error.observation()),
            Ok(Err(AskError::Bmc(error))) => Ok(error.observation()),
            Err(_) => Ok(BmcObservation::Unreachable { class: Transient::TimedOut }),
        }
    }

    /// Asks the BMC and leaves what it said for the host's own pass.
    pub(super) async fn bmc_pass(&self, key: &HostKey) -> Result<Next, PassError> {
        let Some(host) = self.ctx.store.get::<PhysicalHost>(key).await? else { return Ok(Next::default()) };
        if host.metadata.is_paused() || host.metadata.deletion_timestamp.is_some() {
            return Ok(Next::default());
        }
        let observation = self.ask(&host).await?;
        let shown = observation.clone();
        let failures = self.memory.observed(&host, observation);
        let again = Some(shown.ask_again(failures, &self.ctx.timings));
        Ok(Next { again, wake: vec![Key::Host(key.clone())], ..Next::default() })
    }
}
