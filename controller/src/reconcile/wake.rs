//! Who is to be woken when something they depend on changes.

use farrier_shared::contract::{HostKey, Name};
use farrier_shared::resource::machine::MachinePhase;
use farrier_shared::resource::{Beskar7Machine, PhysicalHost};

use super::{Key, Next, PassError, Shell};

impl Shell {
    /// Hosts whose BMC is reached with this Secret, and machines whose user-data it is.
    pub(super) async fn who_uses(&self, secret: &HostKey) -> Result<Next, PassError> {
        let store = &self.ctx.store;
        let uses = |host: &PhysicalHost| {
            let connection = &host.spec.redfish_connection;
            connection.credentials_secret_ref == secret.name
                || connection.ca_bundle_secret_ref.as_ref() == Some(&secret.name)
        };
        let hosts = store.list::<PhysicalHost>(Some(&secret.namespace)).await?;
        let machines = store.list::<Beskar7Machine>(Some(&secret.namespace)).await?;
        let hosts = hosts.iter().filter(|h| uses(h)).map(|h| Key::Bmc(h.metadata.key()));
        let data = |m: &&Beskar7Machine| {
            m.spec.bootstrap.as_ref().is_some_and(|b| b.data_secret_name == secret.name)
        };
        let machines = machines.iter().filter(data).map(|m| Key::Machine(m.metadata.key()));
        Ok(Next { wake: hosts.chain(machines).collect(), ..Next::default() })
    }

    /// Machines of this namespace that have no host yet.
    pub(super) async fn who_waits(&self, namespace: &Name) -> Result<Next, PassError> {
        let machines = self.ctx.store.list::<Beskar7Machine>(Some(namespace)).await?;
        let waits = |m: &&Beskar7Machine| {
            m.spec.provider_id.is_none() && matches!(m.status.phase, None | Some(MachinePhase::Pending))
        };
        let wake = machines.iter().filter(waits).map(|m| Key::Machine(m.metadata.key())).collect();
        Ok(Next { wake, ..Next::default() })
    }
}
