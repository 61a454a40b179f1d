//! Which machine has which host and which hosts are free, so that a pass reads one object and not thousands.
//!
//! Built from everything before the first pass, kept by every pass over a host. It only says where to look: what
//! it names is read afresh, and a claim is a compare-and-swap.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use farrier_shared::contract::{HostKey, Name};
use farrier_shared::lifecycle::selector::Selector;
use farrier_shared::lifecycle::{claim, host_view};
use farrier_shared::resource::PhysicalHost;

use super::free::Free;

/// The index; shared by all passes.
#[derive(Debug, Default)]
pub(super) struct Index(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// Every host was seen once.
    complete: bool,
    host_of: HashMap<HostKey, HostKey>,
    machine_of: HashMap<HostKey, HostKey>,
    free: Free,
}

impl Index {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in a host as it is now.
    pub(super) fn see(&self, host: &PhysicalHost) {
        let key = host.metadata.key();
        let free = claim::is_free(host);
        let mut index = self.lock();
        index.unlink(&key);
        if free {
            index.free.insert(&key, &host.metadata.labels);
        }
        if let Some(machine) = host_view::consumer_key(host) {
            index.host_of.insert(machine.clone(), key.clone());
            index.machine_of.insert(key, machine);
        }
    }

    /// The host is gone.
    pub(super) fn gone(&self, key: &HostKey) {
        self.lock().unlink(key);
    }

    /// Every host was seen.
    pub(super) fn complete(&self) {
        self.lock().complete = true;
    }

    /// The host whose claim names this machine.
    pub(super) fn host_of(&self, machine: &HostKey) -> Option<HostKey> {
        self.lock().host_of.get(machine).cloned()
    }

    /// Free hosts as [`Free::some`] gives them; `None` while not every host was seen.
    pub(super) fn free(
        &self,
        namespace: &Name,
        selector: Option<&Selector<'_>>,
        skip: usize,
        limit: usize,
    ) -> Option<Vec<HostKey>> {
        let index = self.lock();
        index.complete.then(|| index.free.some(namespace, selector, skip, limit))
    }
}

impl Inner {
    fn unlink(&mut self, host: &HostKey) {
        self.free.remove(host);
        if let Some(machine) = self.machine_of.remove(host)
            && self.host_of.get(&machine) == Some(host)
        {
            self.host_of.remove(&machine);
        }
    }
}

#[cfg(test)]
mod tests {
    use farrier_shared::lifecycle::claim::reference_to;
    use farrier_shared::resource::host::RedfishConnection;
    use farrier_shared::resource::{HostState, ObjectMeta, PhysicalHostSpec};

    use super::*;

    fn name(text: &str) -> Name {
        text.parse().unwrap()
    }

    fn host(namespace: &str, text: &str) -> PhysicalHost {
        let connection = RedfishConnection {
            address: "https://192.0.2.1".parse().unwrap(),
            credentials_secret_ref: name("bmc"),
            insecure_skip_verify: None,
            ca_bundle_secret_ref: None,
        };
        let spec = PhysicalHostSpec {
            redfish_connection: connection,
            consumer_ref: None,
            boot_mac_addresses: vec![],
            boot_mode: None,
            agent_options: Default::default(),
        };
        let mut host = PhysicalHost::new(ObjectMeta::new(name(namespace), name(text)), spec);
        host.status.state = HostState::Available;
        host
    }

    fn free(index: &Index) -> String {
        let keys = index.free(&name("b"), None, 0, 3).unwrap();
        keys.iter().map(|k| k.name.as_str()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn nothing_is_said_to_be_free_before_every_host_was_seen() {
        let index = Index::default();
        index.see(&host("b", "1"));
        assert!(index.free(&name("b"), None, 0, 3).is_none());
        index.complete();
        assert_eq!(free(&index), "1");
    }

    #[test]
    fn a_claim_is_followed_from_host_to_host() {
        let index = Index::default();
        index.complete();
        let text = r#"{"apiVersion":"infrastructure.cluster.x-k8s.io/v1beta2","kind":"Beskar7Machine",
            "metadata":{"name":"m","namespace":"b"},
            "spec":{"inspectionImageURL":"http://i","targetImageURL":"http://t"}}"#;
        let machine = serde_json::from_str(text).unwrap();
        let key = HostKey::new(name("b"), name("m"));
        let mut claimed = host("b", "1");
        claimed.spec.consumer_ref = Some(reference_to(&machine));
        index.see(&claimed);
        assert_eq!(index.host_of(&key), Some(claimed.metadata.key()));
        assert_eq!(free(&index), "");
        index.see(&host("b", "1"));
        assert_eq!(index.host_of(&key), None);
        assert_eq!(free(&index), "1");
        index.gone(&claimed.metadata.key());
        assert_eq!(free(&index), "");
    }
}
