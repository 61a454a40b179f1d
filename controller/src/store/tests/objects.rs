//! Objects: compare-and-swap, finalizers, finding.

use super::*;

#[tokio::test]
async fn create_sets_identity_and_refuses_a_taken_name() {
    let store = Store::in_memory().unwrap();
    let created = store.create(host("a")).await.unwrap();
    assert!(!created.metadata.uid.is_empty());
    assert!(!created.metadata.resource_version.is_empty());
    assert!(created.metadata.creation_timestamp.is_some());
    let read: PhysicalHost = store.get(&key("a")).await.unwrap().unwrap();
    assert_eq!(read.metadata, created.metadata);
    assert!(matches!(store.create(host("a")).await, Err(StoreError::AlreadyExists { .. })));
}

#[tokio::test]
async fn update_needs_the_version_that_is_stored() {
    let store = Store::in_memory().unwrap();
    let first = store.create(host("a")).await.unwrap();
    let mut second = first.clone();
    second.status.state = HostState::Available;
    let second = store.update(&second).await.unwrap();
    assert_ne!(second.metadata.resource_version, first.metadata.resource_version);
    let mut stale = first.clone();
    stale.status.state = HostState::Error;
    assert!(matches!(store.update(&stale).await, Err(StoreError::Conflict { .. })));
    let mut unversioned = second.clone();
    unversioned.metadata.resource_version.clear();
    assert!(matches!(store.update(&unversioned).await, Err(StoreError::Conflict { .. })));
    let read: PhysicalHost = store.get(&key("a")).await.unwrap().unwrap();
    assert_eq!(read.status.state, HostState::Available);
    assert!(matches!(store.update(&host("none")).await, Err(StoreError::NotFound { .. })));
}

#[tokio::test]
async fn update_of_a_recreated_object_conflicts() {
    let store = Store::in_memory().unwrap();
    let old = store.create(host("a")).await.unwrap();
    store.delete::<PhysicalHost>(&key("a")).await.unwrap();
    store.create(host("a")).await.unwrap();
    assert!(matches!(store.update(&old).await, Err(StoreError::Conflict { .. })));
}

#[tokio::test]
async fn update_keeps_what_belongs_to_the_store() {
    let store = Store::in_memory().unwrap();
    let created = store.create(host("a")).await.unwrap();
    let mut forged = created.clone();
    forged.metadata.creation_timestamp = None;
    forged.metadata.deletion_timestamp = Some(Time::from_unix(1));
    forged.metadata.finalizers.push("kept".to_owned());
    let updated = store.update(&forged).await.unwrap();
    assert_eq!(updated.metadata.creation_timestamp, created.metadata.creation_timestamp);
    assert_eq!(updated.metadata.deletion_timestamp, None);
}

#[tokio::test]
async fn update_that_changes_nothing_tells_nobody() {
    let store = Store::in_memory().unwrap();
    let created = store.create(host("a")).await.unwrap();
    let mut watch = store.watch();
    let same = store.update(&created).await.unwrap();
    assert_eq!(same.metadata.resource_version, created.metadata.resource_version);
    assert!(watch.try_recv().is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_writers_at_one_version_exactly_one_wins() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let created = store.create(host("a")).await.unwrap();
    let tasks: Vec<_> = (0..64)
        .map(|number| {
            let (store, mut mine) = (store.clone(), created.clone());
            mine.status.error_message = format!("writer {number}");
            tokio::spawn(async move { store.update(&mine).await })
        })
        .collect();
    let mut won = 0;
    for task in tasks {
        match task.await.unwrap() {
            Ok(_) => won += 1,
            Err(StoreError::Conflict { .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }
    assert_eq!(won, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_write_in_a_group_does_not_undo_its_neighbours() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let tasks: Vec<_> = (0..200)
        .map(|number| {
            let store = store.clone();
            // Every name is asked for twice.
            tokio::spawn(async move { store.create(host(&format!("h{}", number / 2))).await.is_ok() })
        })
        .collect();
    let mut created = 0;
    for task in tasks {
        created += usize::from(task.await.unwrap());
    }
    assert_eq!(created, 100);
    assert_eq!(store.list::<PhysicalHost>(None).await.unwrap().len(), 100);
}

#[tokio::test]
async fn list_is_sorted_and_keeps_to_its_namespace() {
    let store = Store::in_memory().unwrap();
    for text in ["b", "a", "c"] {
        store.create(host(text)).await.unwrap();
    }
    let mut other = host("b");
    other.metadata.namespace = name("another");
    store.create(other).await.unwrap();
    let names = |hosts: Vec<PhysicalHost>| {
        hosts.iter().map(|h| h.metadata.key().to_string()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(names(store.list(None).await.unwrap()), "another/b default/a default/b default/c");
    assert_eq!(names(store.list(Some(&name("default"))).await.unwrap()), "default/a default/b default/c");
}

#[tokio::test]
async fn an_object_with_finalizers_goes_when_the_last_one_does() {
    let store = Store::in_memory().unwrap();
    let mut new = host("a");
    new.metadata.finalizers = vec!["one".to_owned(), "two".to_owned()];
    store.create(new).await.unwrap();
    store.delete::<PhysicalHost>(&key("a")).await.unwrap();
    let mut dying: PhysicalHost = store.get(&key("a")).await.unwrap().unwrap();
    let asked = dying.metadata.deletion_timestamp;
    assert!(asked.is_some());
    store.delete::<PhysicalHost>(&key("a")).await.unwrap();
    dying.metadata.finalizers.pop();
    let mut dying = store.update(&dying).await.unwrap();
    assert_eq!(dying.metadata.deletion_timestamp, asked);
    dying.metadata.finalizers.clear();
    store.update(&dying).await.unwrap();
    assert!(store.get::<PhysicalHost>(&key("a")).await.unwrap().is_none());
    assert!(matches!(store.delete::<PhysicalHost>(&key("a")).await, Err(StoreError::NotFound { .. })));
}

async fn booting_from(store: &Store, mac: &str) -> Vec<String> {
    let term = Term::BootsFrom(mac.parse().unwrap());
    let found = store.find::<PhysicalHost>(term, Scope::Everywhere, 10).await.unwrap();
    found.iter().map(|h| h.metadata.key().to_string()).collect()
}

#[tokio::test]
async fn what_is_found_follows_every_write() {
    let dir = tempfile::tempdir().unwrap();
    for store in [Store::in_memory().unwrap(), Store::open(dir.path()).unwrap()] {
        let (first, second) = ("52:54:00:00:00:01", "52:54:00:00:00:02");
        let mut declared = host("a");
        declared.spec.boot_mac_addresses = vec![first.parse().unwrap()];
        let mut declared = store.create(declared).await.unwrap();
        let mut other = host("b");
        other.metadata.namespace = name("elsewhere");
        let mut other = store.create(other).await.unwrap();
        assert_eq!(booting_from(&store, first).await, ["default/a"]);
        assert!(booting_from(&store, second).await.is_empty());

        declared.spec.boot_mac_addresses = vec![second.parse().unwrap()];
        store.update(&declared).await.unwrap();
        other.status.inspection_report =
            serde_json::from_str(r#"{"nics":[{"name":"eth0","macAddress":"52:54:00:00:00:02"}]}"#).unwrap();
        store.update(&other).await.unwrap();
        assert!(booting_from(&store, first).await.is_empty());
        assert_eq!(booting_from(&store, second).await, ["default/a", "elsewhere/b"]);

        // A write that lost leaves no trace.
        declared.spec.boot_mac_addresses = vec![first.parse().unwrap()];
        assert!(store.update(&declared).await.is_err());
        assert!(booting_from(&store, first).await.is_empty());
        store.delete::<PhysicalHost>(&key("a")).await.unwrap();
        assert_eq!(booting_from(&store, second).await, ["elsewhere/b"]);
    }
}

#[tokio::test]
async fn what_is_found_comes_in_pages() {
    let store = Store::in_memory().unwrap();
    for text in ["c", "a", "d", "b"] {
        store.create(host(text)).await.unwrap();
    }
    let bmc = name("bmc");
    let mut seen = Vec::new();
    let mut after = None;
    loop {
        let scope = Scope::Namespace { namespace: name("default"), after: after.clone() };
        let page = store.find::<PhysicalHost>(Term::Uses(&bmc), scope, 3).await.unwrap();
        let Some(last) = page.last() else { break };
        after = Some(last.metadata.name.clone());
        seen.push(page.iter().map(|h| h.metadata.name.as_str()).collect::<Vec<_>>().join(" "));
    }
    assert_eq!(seen, ["a b c", "d"]);
    let keys = store.keys::<PhysicalHost>().await.unwrap();
    assert_eq!(keys, [key("a"), key("b"), key("c"), key("d")]);
}
