//! Reaching a host's BMC, and asking it how things are.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use farrier_shared::contract::HostKey;
use farrier_shared::lifecycle::fault::Transient;
use farrier_shared::lifecycle::{BmcObservation, host_view};
use farrier_shared::resource::{PhysicalHost, Secret};

use super::{Key, Next, PassError, Shell};
use crate::bmc::access::{AccessError, authorize};
use crate::bmc::{Bmc, BmcError};
use crate::store::StoreError;

/// The longest look at a BMC: each exchange is bounded already, their number is not known beforehand.
const LOOK: Duration = Duration::from_secs(120);

/// Between the moments at which healthy BMCs are asked.
const BEAT: Duration = Duration::from_secs(2);

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
        // The installed system's addresses are what its machine wants; its restart need not show in the power.
        let comes_up = self.memory.lately_ready(host);
        let look = async {
            let bmc = self.connect(host).await?;
            if comes_up {
                bmc.distrust_addresses();
            }
            Ok(bmc.system_info().await?)
        };
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
        let news = host_view::is_news(&host, &observation);
        let failures = self.memory.observed(&host, observation);
        if !news {
            self.memory.observation_used(&host, &shown);
        }
        let again = Some(match shown {
            BmcObservation::Up(_) => {
                until_its_turn(key, self.ctx.clock.monotonic(), self.ctx.timings.healthy)
            }
            _ => shown.ask_again(failures, &self.ctx.timings),
        });
        let wake = if news { vec![Key::Host(key.clone())] } else { Vec::new() };
        Ok(Next { again, wake, ..Next::default() })
    }
}

/// How long until a healthy BMC is asked again: until the moment of each `period` that is its host's own. Hosts that
/// came at once, with a file of them or with the controller's start, are spread from the second look on. `now` is any
/// time that never jumps.
///
/// Those moments are whole [`BEAT`]s: a few looks one after the other cost much less than as many that each wake a
/// processor whose caches hold something else.
fn until_its_turn(host: &HostKey, now: Duration, period: Duration) -> Duration {
    let period = period.max(BEAT).as_millis();
    let beats = (period / BEAT.as_millis()).max(1);
    let mut hasher = DefaultHasher::new();
    host.hash(&mut hasher);
    let turn = u128::from(hasher.finish()) % beats * BEAT.as_millis();
    // Now is its turn when nothing is left: it was just asked.
    let left = (turn + period - now.as_millis() % period) % period;
    Duration::from_millis(u64::try_from(if left == 0 { period } else { left }).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: Duration = Duration::from_secs(300);

    #[test]
    fn each_host_has_a_turn_of_its_own_in_every_period_and_keeps_it() {
        let mut asked = [0_u32; 10];
        for number in 0..10_000 {
            let host = HostKey::new("default".parse().unwrap(), format!("h{number}").parse().unwrap());
            let enrolled = Duration::from_millis(1_700_000_123);
            let first = until_its_turn(&host, enrolled, PERIOD);
            assert!(!first.is_zero() && first <= PERIOD, "{first:?}");
            let turn = enrolled + first;
            assert_eq!(turn.as_millis() % BEAT.as_millis(), 0, "{turn:?}");
            assert_eq!(until_its_turn(&host, turn, PERIOD), PERIOD);
            // A look takes time; the turn does not move.
            let late = turn + Duration::from_millis(7_003);
            assert_eq!(until_its_turn(&host, late, PERIOD), Duration::from_millis(292_997));
            asked[usize::try_from((first.as_millis() - 1) / 30_000).unwrap()] += 1;
        }
        assert!(asked.iter().all(|n| (800..1200).contains(n)), "{asked:?}");
    }
}
