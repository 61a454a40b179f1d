//! Booting a host's inspection image, in the order of
//! [`boot_plan`](farrier_shared::lifecycle::boot_plan), and the other things done to a host's power.

use farrier_shared::contract::HostKey;
use farrier_shared::lifecycle::mint::{Ensured, Entropy, Running, ensure};
use farrier_shared::lifecycle::{
    BootPlan, CredentialsRead, InspectRequest, PowerAction, PowerState, host_view,
};
use farrier_shared::resource::{Beskar7Machine, PhysicalHost, Resource as _};

use super::bmc::AskError;
use super::{PassError, Shell};
use crate::bmc::{Bmc, ResetKind};
use crate::store::StoreError;

impl Shell {
    pub(super) async fn boot(&self, machine: &Beskar7Machine, plan: &BootPlan) -> Result<(), PassError> {
        let store = &self.ctx.store;
        let bmc = self.connect(&not_paused(self.claimed(machine, &plan.host).await?)?).await?;
        let power = bmc.power_state().await.map_err(AskError::from)?;

        // Whatever is booted finds its credentials: they come before the power.
        let host = not_paused(self.claimed(machine, &plan.host).await?)?;
        let stored = store.credentials(&plan.host).await?;
        let read = stored.as_ref().map_or(CredentialsRead::Absent, |s| CredentialsRead::Present(&s.value));
        let signals = store.signals(&plan.host).await?;
        let running = plan.still_running(power).map(|run| Running { run, signals: &signals });
        let now = self.ctx.clock.now();
        let ensured = ensure(&host, machine, read, running, &entropy()?, now, &self.ctx.timings)?;
        // A server powered on for a script that is then refused would only run out of time.
        let credentials = ensured.credentials();
        self.ctx.scripts.check(&host, machine, credentials)?;
        if let Ensured::Write(new) = &ensured {
            let version = stored.as_ref().map(|s| s.version.as_str());
            store.put_credentials(&plan.host, new, version).await?;
        }

        if let Some(action) = plan.power(credentials, power) {
            tracing::info!(host = %plan.host, run = credentials.run, ?action, "booting the inspection image");
            self.memory.booting(&host, machine, &credentials.run);
            boot_from_network(&*bmc, &host, reset_kind(action)).await?;
        }
        self.memory.booted(&host, machine, &credentials.run);

        let fresh = self.claimed(machine, &plan.host).await?;
        match plan.request(&fresh, machine, credentials) {
            InspectRequest::Write(signal) => Ok(store.put_signal(&plan.host, &signal).await?),
            InspectRequest::NoLongerApplies => {
                tracing::info!(host = %plan.host, "the host has moved on by itself, nothing is requested");
                Ok(())
            }
            InspectRequest::NotOurs => Err(not_ours(&plan.host)),
        }
    }

    /// The host, freshly read, if it is still this machine's.
    async fn claimed(&self, machine: &Beskar7Machine, key: &HostKey) -> Result<PhysicalHost, PassError> {
        let host = self.host(key).await?;
        if host_view::is_claimed_by(&host, machine) { Ok(host) } else { Err(not_ours(key)) }
    }

    /// The host, freshly read.
    pub(super) async fn host(&self, key: &HostKey) -> Result<PhysicalHost, StoreError> {
        let host = self.ctx.store.get::<PhysicalHost>(key).await?;
        host.ok_or_else(|| StoreError::NotFound { kind: PhysicalHost::KIND, key: key.clone() })
    }

    pub(super) async fn ensure_powered_on(&self, key: &HostKey) -> Result<(), PassError> {
        let host = not_paused(self.host(key).await?)?;
        let bmc = self.connect(&host).await?;
        if bmc.power_state().await.map_err(AskError::from)? == PowerState::Off {
            tracing::info!(host = %key, "the host is off in the middle of its inspection, switching it on again");
            // Whoever forgot to switch on may have forgotten where to boot from.
            boot_from_network(&*bmc, &host, ResetKind::On).await?;
        }
        Ok(())
    }

    pub(super) async fn clear_boot_override(&self, key: &HostKey) -> Result<(), PassError> {
        let bmc = self.connect(&not_paused(self.host(key).await?)?).await?;
        Ok(bmc.clear_boot_override().await.map_err(AskError::from)?)
    }

    pub(super) async fn power(&self, key: &HostKey, action: PowerAction) -> Result<(), PassError> {
        let bmc = self.connect(&not_paused(self.host(key).await?)?).await?;
        Ok(bmc.reset(reset_kind(action)).await.map_err(AskError::from)?)
    }
}

/// Has the host boot from the network now. Network boot is only set along with a boot: on a host that runs already, it
/// would catch the boot after the next.
async fn boot_from_network(bmc: &dyn Bmc, host: &PhysicalHost, how: ResetKind) -> Result<(), AskError> {
    bmc.set_boot_pxe_once(host.spec.boot_mode.into()).await?;
    Ok(bmc.reset(how).await?)
}

/// The host, unless the operator has paused it since the pass was decided.
fn not_paused(host: PhysicalHost) -> Result<PhysicalHost, PassError> {
    if host.metadata.is_paused() {
        return Err(PassError::Other(format!("host {} is paused", host.metadata.key())));
    }
    Ok(host)
}

fn not_ours(host: &HostKey) -> PassError {
    PassError::Other(format!("host {host} is not claimed by this machine any more"))
}

fn reset_kind(action: PowerAction) -> ResetKind {
    match action {
        PowerAction::On => ResetKind::On,
        PowerAction::GracefulShutdown => ResetKind::GracefulShutdown,
        PowerAction::ForceOff => ResetKind::ForceOff,
        PowerAction::ForceRestart => ResetKind::ForceRestart,
    }
}

fn entropy() -> Result<Entropy, PassError> {
    let mut entropy = Entropy { token: [0; 32], nonce: [0; 32], run: [0; 8] };
    getrandom::fill(&mut entropy.token).map_err(PassError::Random)?;
    getrandom::fill(&mut entropy.nonce).map_err(PassError::Random)?;
    getrandom::fill(&mut entropy.run).map_err(PassError::Random)?;
    Ok(entropy)
}
