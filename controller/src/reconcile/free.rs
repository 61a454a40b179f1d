//! Free hosts by namespace, name and label: what a machine that looks for a host is offered.
//!
//! Looking costs what is found, not what there is: a room of ten thousand free hosts is not walked through for
//! each of ten thousand machines.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use farrier_shared::contract::{HostKey, Name};
use farrier_shared::lifecycle::selector::Selector;

type Labels = BTreeMap<String, String>;

/// How far from the first free host a machine that lost a race may be sent. Passes at a time are few, so spreading
/// them wider gains nothing, and the way there is walked.
const SPREAD: usize = 256;

/// All free hosts.
#[derive(Debug, Default)]
pub(super) struct Free(HashMap<Name, OfNamespace>);

#[derive(Debug, Default)]
struct OfNamespace {
    hosts: BTreeMap<Name, Arc<Labels>>,
    by_label: HashMap<(String, String), BTreeSet<Name>>,
}

impl Free {
    pub(super) fn insert(&mut self, host: &HostKey, labels: &Labels) {
        let of = self.0.entry(host.namespace.clone()).or_default();
        for (label, value) in labels {
            of.by_label.entry((label.clone(), value.clone())).or_default().insert(host.name.clone());
        }
        of.hosts.insert(host.name.clone(), Arc::new(labels.clone()));
    }

    pub(super) fn remove(&mut self, host: &HostKey) {
        let Some(of) = self.0.get_mut(&host.namespace) else { return };
        let labels = of.hosts.remove(&host.name).unwrap_or_default();
        for (label, value) in labels.iter() {
            let pair = (label.clone(), value.clone());
            if let Some(names) = of.by_label.get_mut(&pair) {
                names.remove(&host.name);
                if names.is_empty() {
                    of.by_label.remove(&pair);
                }
            }
        }
        if of.hosts.is_empty() {
            self.0.remove(&host.namespace);
        }
    }

    /// Up to `limit` hosts of a namespace that the selector takes, from the `skip`th on and round. When it takes
    /// none, one that it does not take: that some are free is part of the answer.
    pub(super) fn some(
        &self,
        namespace: &Name,
        selector: Option<&Selector<'_>>,
        skip: usize,
        limit: usize,
    ) -> Vec<HostKey> {
        let Some(of) = self.0.get(namespace) else { return Vec::new() };
        let mut found = of.matching(selector, skip, limit);
        if found.is_empty() && limit > 0 {
            found.extend(of.hosts.keys().next());
        }
        found.into_iter().map(|name| HostKey::new(namespace.clone(), name.clone())).collect()
    }
}

impl OfNamespace {
    fn matching(&self, selector: Option<&Selector<'_>>, skip: usize, limit: usize) -> Vec<&Name> {
        let Some(selector) = selector else {
            return around(|| self.hosts.keys(), self.hosts.len(), skip, limit);
        };
        let takes = |name: &&Name| self.hosts.get(*name).is_some_and(|labels| selector.matches(labels));
        // The rarest label that is asked for leaves the fewest to look at.
        let mut rarest: Option<&BTreeSet<Name>> = None;
        for (label, value) in selector.required() {
            let Some(names) = self.by_label.get(&(label.to_owned(), value.to_owned())) else {
                return Vec::new();
            };
            if rarest.is_none_or(|r| names.len() < r.len()) {
                rarest = Some(names);
            }
        }
        match rarest {
            Some(names) => around(|| names.iter().filter(takes), names.len(), skip, limit),
            None => around(|| self.hosts.keys().filter(takes), self.hosts.len(), skip, limit),
        }
    }
}

/// Up to `limit` of at most `count` items, the first few of them left for last.
fn around<'a, I>(items: impl Fn() -> I, count: usize, skip: usize, limit: usize) -> Vec<&'a Name>
where
    I: Iterator<Item = &'a Name>,
{
    let skip = skip.checked_rem(count.min(SPREAD)).unwrap_or(0);
    let mut found: Vec<&Name> = items().skip(skip).take(limit).collect();
    if found.len() < limit {
        found.extend(items().take(skip.min(limit - found.len())));
    }
    found
}

#[cfg(test)]
mod tests {
    use farrier_shared::resource::machine::LabelSelector;

    use super::*;

    fn name(text: &str) -> Name {
        text.parse().unwrap()
    }

    fn key(namespace: &str, text: &str) -> HostKey {
        HostKey::new(name(namespace), name(text))
    }

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
    }

    fn found(free: &Free, selector: Option<&serde_json::Value>, skip: usize) -> String {
        let selector: Option<LabelSelector> = selector.map(|s| serde_json::from_value(s.clone()).unwrap());
        let selector = selector.as_ref().map(|s| Selector::parse(s).unwrap());
        let keys = free.some(&name("b"), selector.as_ref(), skip, 3);
        keys.iter().map(|k| k.name.as_str()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn free_hosts_are_those_of_the_namespace_from_any_point_round() {
        let mut free = Free::default();
        assert_eq!(found(&free, None, 5), "");
        for (namespace, text) in [("a", "x"), ("b", "1"), ("b", "2"), ("b", "3"), ("b", "4"), ("c", "x")] {
            free.insert(&key(namespace, text), &Labels::new());
        }
        for (skip, expected) in [(0, "1 2 3"), (2, "3 4 1"), (3, "4 1 2"), (5, "2 3 4")] {
            assert_eq!(found(&free, None, skip), expected, "{skip}");
        }
        free.remove(&key("b", "2"));
        assert_eq!(found(&free, None, 0), "1 3 4");
    }

    #[test]
    fn a_selector_is_offered_what_it_takes_or_else_one_that_it_does_not_take() {
        let mut free = Free::default();
        free.insert(&key("b", "1"), &labels(&[("rack", "r1"), ("disk", "big")]));
        free.insert(&key("b", "2"), &labels(&[("rack", "r1")]));
        free.insert(&key("b", "3"), &labels(&[("rack", "r2"), ("disk", "big")]));
        free.insert(&key("b", "4"), &labels(&[]));
        let table = [
            (serde_json::json!({}), "1 2 3"),
            (serde_json::json!({"matchLabels": {"rack": "r1"}}), "1 2"),
            (serde_json::json!({"matchLabels": {"rack": "r1", "disk": "big"}}), "1"),
            (serde_json::json!({"matchLabels": {"rack": "r9"}}), "1"),
            (
                serde_json::json!({"matchExpressions": [{"key": "rack", "operator": "In", "values": ["r2"]}]}),
                "3",
            ),
            (serde_json::json!({"matchExpressions": [{"key": "rack", "operator": "DoesNotExist"}]}), "4"),
        ];
        for (selector, expected) in &table {
            assert_eq!(found(&free, Some(selector), 0), *expected, "{selector}");
        }
        for text in ["1", "2", "3", "4"] {
            free.remove(&key("b", text));
        }
        assert!(free.0.is_empty());
    }
}
