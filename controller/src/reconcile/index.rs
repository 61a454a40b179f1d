//! Which machine has which host and which hosts are free, so that a pass reads one object and not thousands.
//!
//! Built from everything before the first pass, kept by every pass over a host. It only says where to look: what
//! it names is read afresh, and a claim is a compare-and-swap.

use std::collections::{BTreeSet, HashMap};
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard, PoisonError};

use farrier_shared::contract::{HostKey, Name};
use farrier_shared::lifecycle::{claim, host_view};
use farrier_shared::resource::PhysicalHost;

/// The index; shared by all passes.
#[derive(Debug, Default)]
pub(super) struct Index(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// Every host was seen once.
    complete: bool,
    host_of: HashMap<HostKey, HostKey>,
    machine_of: HashMap<HostKey, HostKey>,
    free: BTreeSet<HostKey>,
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
            index.free.insert(key.clone());
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

    /// Up to `limit` free hosts of a namespace, the first `skip` of them left for last; `None` while not every
    /// host was seen.
    pub(super) fn free(&self, namespace: &Name, skip: usize, limit: usize) -> Option<Vec<HostKey>> {
        let index = self.lock();
        if !index.complete {
            return None;
        }
        // No name is before `0`.
        let Ok(first) = "0".parse() else { return None };
        let from = Bound::Included(HostKey::new(namespace.clone(), first));
        let of_namespace = || {
            index.free.range((from.clone(), Bound::Unbounded)).take_while(|key| key.namespace == *namespace)
        };
        let count = of_namespace().count();
        let skip = skip.checked_rem(count).unwrap_or(0);
        Some(of_namespace().skip(skip).chain(of_namespace().take(skip)).take(limit).cloned().collect())
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
            agent_options: Default::default(),
        };
        let mut host = PhysicalHost::new(ObjectMeta::new(name(namespace), name(text)), spec);
        host.status.state = HostState::Available;
        host
    }

    fn free(index: &Index, skip: usize) -> String {
        let keys = index.free(&name("b"), skip, 3).unwrap();
        keys.iter().map(|k| k.name.as_str()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn free_hosts_are_those_of_the_namespace_from_any_point_round() {
        let index = Index::default();
        assert!(index.free(&name("b"), 0, 3).is_none());
        index.complete();
        assert_eq!(free(&index, 5), "");
        for (namespace, text) in [("a", "x"), ("b", "1"), ("b", "2"), ("b", "3"), ("b", "4"), ("c", "x")] {
            index.see(&host(namespace, text));
        }
        assert_eq!(free(&index, 0), "1 2 3");
        assert_eq!(free(&index, 3), "4 1 2");
        assert_eq!(free(&index, 5), "2 3 4");
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
        assert_eq!(free(&index, 0), "");
        index.see(&host("b", "1"));
        assert_eq!(index.host_of(&key), None);
        assert_eq!(free(&index, 0), "1");
        index.gone(&claimed.metadata.key());
        assert_eq!(free(&index, 0), "");
    }
}
