//! Letting go of a machine's host.

use farrier_shared::contract::HostKey;
use farrier_shared::lifecycle::{HistoryEntry, PowerAction, host_view};
use farrier_shared::resource::{Beskar7Machine, PhysicalHost};

use super::{PassError, Shell};

impl Shell {
    /// Carries a power action out as far as the BMC lets it. One that fails holds nothing up, but whoever looks at the
    /// host is to find out that it may be running still.
    pub(super) async fn try_power(&self, host: &PhysicalHost, action: PowerAction) {
        let key = host.metadata.key();
        let Err(error) = self.power(&key, action).await else { return };
        tracing::warn!(host = %key, %error, ?action, "a power action failed; going on without");
        let why = format!("{action} failed, the server may be running still: {error}");
        self.tell(host, "PowerActionFailed", &why).await;
    }

    /// Writes what has happened to a host into its history; its state stays what it is.
    pub(super) async fn tell(&self, host: &PhysicalHost, event: &str, reason: &str) {
        let state = host.status.state.as_str();
        let entry = HistoryEntry {
            at: self.ctx.clock.now(),
            actor: "machine".to_owned(),
            event: event.to_owned(),
            from: state.to_owned(),
            to: state.to_owned(),
            reason: reason.to_owned(),
            run: None,
        };
        self.append_history(&host.metadata.key(), &entry).await;
    }

    pub(super) async fn release(&self, machine: &Beskar7Machine, key: &HostKey) -> Result<(), PassError> {
        let Some(mut host) = self.ctx.store.get::<PhysicalHost>(key).await? else { return Ok(()) };
        if host_view::is_claimed_by(&host, machine) {
            host.spec.consumer_ref = None;
            self.index.see(&self.ctx.store.update(&host).await?);
            self.memory.forget_boot(&host);
        }
        Ok(())
    }
}
