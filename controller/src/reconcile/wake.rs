//! Who is to be woken when something they depend on changes.

use farrier_shared::contract::{HostKey, Name};
use farrier_shared::lifecycle::claim;
use farrier_shared::resource::{Beskar7Machine, PhysicalHost};

use super::{Key, Next, PassError, Shell};
use crate::store::{Scope, StoreError, Term, looks_for_host};

/// Objects read at a time.
const PAGE: usize = 64;
/// Free hosts offered at a time; when there are more, the rest is offered soon after.
const OFFERED: usize = 256;

impl Shell {
    /// Hosts whose BMC is reached with this Secret, and machines whose user-data it is.
    pub(super) async fn who_uses(&self, secret: &HostKey) -> Result<Next, PassError> {
        let store = &self.ctx.store;
        let uses = Term::Uses(&secret.name);
        let scope = || Scope::Namespace { namespace: secret.namespace.clone(), after: None };
        let hosts = store.find::<PhysicalHost>(uses, scope(), usize::MAX).await?;
        let machines = store.find::<Beskar7Machine>(uses, scope(), usize::MAX).await?;
        let hosts = hosts.iter().map(|h| Key::Bmc(h.metadata.key()));
        let machines = machines.iter().map(|m| Key::Machine(m.metadata.key()));
        Ok(Next { wake: hosts.chain(machines).collect(), ..Next::default() })
    }

    /// Machines that look for this host and no other: whoever waits for some host else need not be read for it.
    pub(super) async fn who_wants(&self, host: &HostKey) -> Result<Vec<Key>, StoreError> {
        let wants = Term::Wants(&host.name);
        let scope = Scope::Namespace { namespace: host.namespace.clone(), after: None };
        let machines = self.ctx.store.find::<Beskar7Machine>(wants, scope, usize::MAX).await?;
        let waiting = machines.iter().filter(|machine| looks_for_host(machine));
        Ok(waiting.map(|machine| Key::Machine(machine.metadata.key())).collect())
    }

    /// Machines of this namespace that have no host yet, want none in particular and may claim one of those that are
    /// free: one machine for each host, since waking all of them for each would cost machines times hosts.
    pub(super) async fn who_waits(&self, namespace: &Name) -> Result<Next, PassError> {
        let store = &self.ctx.store;
        let mut after = None;
        let mut page = self.waiting(namespace, &mut after).await?;
        // While hosts are enrolled nobody waits, most of the time; then no host is read.
        let mut free = Vec::new();
        if !page.is_empty() {
            for key in self.index.free(namespace, None, 0, OFFERED).unwrap_or_default() {
                free.extend(store.get::<PhysicalHost>(&key).await?);
            }
        }
        let more = free.len() == OFFERED;
        let mut next = Next::default();
        while !free.is_empty() {
            for machine in &page {
                let key = machine.metadata.key();
                let Ok(host) = claim::choose(machine, None, &free) else { continue };
                let host = host.metadata.key();
                if self.index.host_of(&key).is_none() {
                    free.retain(|h| h.metadata.key() != host);
                    next.wake.push(Key::Machine(key));
                }
            }
            if after.is_none() {
                return Ok(next);
            }
            page = self.waiting(namespace, &mut after).await?;
        }
        next.again = more.then_some(self.ctx.timings.soon);
        Ok(next)
    }

    /// The machines without a host that come after this name; `after` is where the next page begins, if there is
    /// one.
    async fn waiting(
        &self,
        namespace: &Name,
        after: &mut Option<Name>,
    ) -> Result<Vec<Beskar7Machine>, StoreError> {
        let scope = Scope::Namespace { namespace: namespace.clone(), after: after.take() };
        let page = self.ctx.store.find::<Beskar7Machine>(Term::Waiting, scope, PAGE).await?;
        *after = page.last().filter(|_| page.len() == PAGE).map(|last| last.metadata.name.clone());
        Ok(page)
    }
}
