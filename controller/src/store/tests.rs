//! The store's promises, each on both places a SQLite store can be where that matters.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;

use farrier_shared::contract::{BootNonce, HostKey, Name, Time, Token};
use farrier_shared::lifecycle::credentials::Credentials;
use farrier_shared::lifecycle::history::HistoryEntry;
use farrier_shared::lifecycle::signal::{Signal, SignalKey};
use farrier_shared::resource::host::RedfishConnection;
use farrier_shared::resource::secret::SecretBytes;
use farrier_shared::resource::{
    HostState, ObjectMeta, PhysicalHost, PhysicalHostSpec, Resource as _, Secret,
};

use super::{Change, HISTORY_LIMIT, Scope, Store, StoreError, Term};

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

fn key(text: &str) -> HostKey {
    HostKey::new(name("default"), name(text))
}

fn host(text: &str) -> PhysicalHost {
    let connection = RedfishConnection {
        address: "https://192.0.2.1".parse().unwrap(),
        credentials_secret_ref: name("bmc"),
        insecure_skip_verify: None,
        ca_bundle_secret_ref: None,
    };
    let spec =
        PhysicalHostSpec { redfish_connection: connection, consumer_ref: None, boot_mac_addresses: vec![] };
    PhysicalHost::new(ObjectMeta::new(name("default"), name(text)), spec)
}

fn signal(value: &str) -> Signal {
    Signal { key: SignalKey::InspectionRequest, value: value.to_owned(), binding: None, report: None }
}

fn credentials(run: &str) -> Credentials {
    Credentials {
        host_uid: "uid".to_owned(),
        consumer: "machine".to_owned(),
        consumer_uid: String::new(),
        run: run.to_owned(),
        token: Token::from_random([1; 32]),
        token_issued_at: Time::from_unix(0),
        token_expires_at: Time::from_unix(3600),
        nonce: BootNonce::from_random([2; 32]),
        nonce_expires_at: Time::from_unix(600),
    }
}

fn entry(number: usize) -> HistoryEntry {
    HistoryEntry {
        at: Time::from_unix(0),
        actor: "test".to_owned(),
        event: format!("Event{number}"),
        from: String::new(),
        to: String::new(),
        reason: String::new(),
        run: None,
    }
}

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
async fn what_was_answered_is_there_after_reopening() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let mut created = store.create(host("a")).await.unwrap();
    created.status.state = HostState::Available;
    let updated = store.update(&created).await.unwrap();
    store.put_signal(&key("a"), &signal("inspect")).await.unwrap();
    let written = store.put_credentials(&key("a"), &credentials("run"), None).await.unwrap();
    store.append_history(&key("a"), &entry(1)).await.unwrap();
    drop(store);

    let store = Store::open(dir.path()).unwrap();
    let read: PhysicalHost = store.get(&key("a")).await.unwrap().unwrap();
    assert_eq!(read.metadata, updated.metadata);
    assert_eq!(read.status.state, HostState::Available);
    assert_eq!(store.signals(&key("a")).await.unwrap(), [signal("inspect")]);
    assert_eq!(store.credentials(&key("a")).await.unwrap(), Some(written));
    assert_eq!(store.history(&key("a")).await.unwrap(), [entry(1)]);
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

#[tokio::test]
async fn a_removed_host_takes_its_records_along() {
    let store = Store::in_memory().unwrap();
    store.create(host("a")).await.unwrap();
    store.put_signal(&key("a"), &signal("inspect")).await.unwrap();
    store.put_credentials(&key("a"), &credentials("run"), None).await.unwrap();
    store.append_history(&key("a"), &entry(1)).await.unwrap();
    store.delete::<PhysicalHost>(&key("a")).await.unwrap();
    store.create(host("a")).await.unwrap();
    assert!(store.signals(&key("a")).await.unwrap().is_empty());
    assert!(store.credentials(&key("a")).await.unwrap().is_none());
    assert!(store.history(&key("a")).await.unwrap().is_empty());
}

#[tokio::test]
async fn records_are_refused_for_a_host_that_is_not_there() {
    let store = Store::in_memory().unwrap();
    let refused = [
        store.put_signal(&key("a"), &signal("inspect")).await,
        store.put_credentials(&key("a"), &credentials("run"), None).await.map(drop),
        store.append_history(&key("a"), &entry(1)).await,
    ];
    for result in refused {
        assert!(matches!(result, Err(StoreError::NotFound { kind: "PhysicalHost", .. })));
    }
}

#[tokio::test]
async fn a_signal_replaced_meanwhile_is_not_removed() {
    let store = Store::in_memory().unwrap();
    store.create(host("a")).await.unwrap();
    store.put_signal(&key("a"), &signal("inspect")).await.unwrap();
    store.put_signal(&key("a"), &signal("timeout")).await.unwrap();
    store.remove_signal(&key("a"), &signal("inspect")).await.unwrap();
    assert_eq!(store.signals(&key("a")).await.unwrap(), [signal("timeout")]);
    store.remove_signal(&key("a"), &signal("timeout")).await.unwrap();
    assert!(store.signals(&key("a")).await.unwrap().is_empty());
}

#[tokio::test]
async fn credentials_are_replaced_only_at_the_version_that_was_read() {
    let store = Store::in_memory().unwrap();
    store.create(host("a")).await.unwrap();
    let first = store.put_credentials(&key("a"), &credentials("one"), None).await.unwrap();
    let again = store.put_credentials(&key("a"), &credentials("two"), None).await;
    assert!(matches!(again, Err(StoreError::Conflict { .. })));
    store.put_credentials(&key("a"), &credentials("two"), Some(&first.version)).await.unwrap();
    let stale = store.put_credentials(&key("a"), &credentials("three"), Some(&first.version)).await;
    assert!(matches!(stale, Err(StoreError::Conflict { .. })));
    assert_eq!(store.credentials(&key("a")).await.unwrap().unwrap().value.run, "two");
}

#[tokio::test]
async fn history_keeps_the_newest_entries_of_each_host() {
    let store = Store::in_memory().unwrap();
    store.create(host("a")).await.unwrap();
    store.create(host("b")).await.unwrap();
    store.append_history(&key("b"), &entry(0)).await.unwrap();
    for number in 0..HISTORY_LIMIT + 5 {
        store.append_history(&key("a"), &entry(number)).await.unwrap();
    }
    let kept = store.history(&key("a")).await.unwrap();
    assert_eq!(kept.len(), HISTORY_LIMIT);
    assert_eq!(kept.first(), Some(&entry(5)));
    assert_eq!(kept.last(), Some(&entry(HISTORY_LIMIT + 4)));
    assert_eq!(store.history(&key("b")).await.unwrap().len(), 1);
}

#[tokio::test]
async fn watchers_learn_of_every_change_and_records_are_their_hosts() {
    let store = Store::in_memory().unwrap();
    let mut watch = store.watch();
    let mut created = store.create(host("a")).await.unwrap();
    created.status.ready = true;
    store.update(&created).await.unwrap();
    store.put_signal(&key("a"), &signal("inspect")).await.unwrap();
    store.put_credentials(&key("a"), &credentials("run"), None).await.unwrap();
    store.remove_signal(&key("a"), &signal("inspect")).await.unwrap();
    store.delete::<PhysicalHost>(&key("a")).await.unwrap();
    let expected = Change { kind: PhysicalHost::KIND.to_owned(), key: key("a") };
    for _ in 0..6 {
        assert_eq!(watch.try_recv().unwrap(), expected);
    }
    // Removing what is not there, and log entries, are no changes.
    let created = store.create(host("a")).await.unwrap();
    watch.try_recv().unwrap();
    store.remove_signal(&created.metadata.key(), &signal("inspect")).await.unwrap();
    store.append_history(&key("a"), &entry(1)).await.unwrap();
    assert!(watch.try_recv().is_err());
}

#[tokio::test]
async fn one_data_directory_serves_one_controller() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let refused = Store::open(dir.path()).unwrap_err();
    assert!(matches!(refused, StoreError::InUse { .. }));
    assert!(refused.to_string().contains(&std::process::id().to_string()), "{refused}");
    drop(store);
    Store::open(dir.path()).unwrap();
}

#[tokio::test]
async fn directory_and_files_are_private() {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("data");
    let store = Store::open(&dir).unwrap();
    store.create(host("a")).await.unwrap();
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&dir), 0o700);
    let files: Vec<_> = std::fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(files.len() >= 3, "{files:?}");
    for file in files {
        assert_eq!(mode(&file), 0o600, "{file:?}");
    }
}

#[tokio::test]
async fn a_newer_schema_is_refused_with_both_versions() {
    let dir = tempfile::tempdir().unwrap();
    drop(Store::open(dir.path()).unwrap());
    let db = rusqlite::Connection::open(dir.path().join("farrier.db")).unwrap();
    db.execute("UPDATE meta SET value = 99 WHERE key = 'schema_version'", []).unwrap();
    drop(db);
    let refused = Store::open(dir.path()).unwrap_err();
    assert!(matches!(refused, StoreError::NewerSchema { found: 99, known: 1, .. }), "{refused}");
}

#[tokio::test]
async fn an_unreadable_object_is_named_without_its_text() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let data = BTreeMap::from([("password".to_owned(), SecretBytes::new(b"x".to_vec()))]);
    store.create(Secret::new(ObjectMeta::new(name("default"), name("bmc")), data)).await.unwrap();
    drop(store);
    let db = rusqlite::Connection::open(dir.path().join("farrier.db")).unwrap();
    db.execute("UPDATE documents SET body = '{\"apiVersion\":7,\"x\":\"hunter2\"}'", []).unwrap();
    drop(db);
    let store = Store::open(dir.path()).unwrap();
    let error = store.get::<Secret>(&key("bmc")).await.unwrap_err().to_string();
    assert!(error.contains("Secret default/bmc") && !error.contains("hunter2"), "{error}");
    // Nor does it hide the others.
    store.create(Secret::new(ObjectMeta::new(name("default"), name("good")), BTreeMap::new())).await.unwrap();
    let listed = store.list::<Secret>(None).await.unwrap();
    assert_eq!(listed.iter().map(|s| s.metadata.name.as_str()).collect::<Vec<_>>(), ["good"]);
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

#[tokio::test]
async fn a_host_and_its_history_change_together_or_not_at_all() {
    let store = Store::in_memory().unwrap();
    let read = store.create(host("a")).await.unwrap();
    let mut changed = read.clone();
    changed.status.state = HostState::Available;
    store.update_host(&changed, vec![entry(1), entry(2)]).await.unwrap();
    let lost = store.update_host(&changed, vec![entry(3)]).await;
    assert!(matches!(lost, Err(StoreError::Conflict { .. })));
    let events: Vec<_> = store.history(&key("a")).await.unwrap().into_iter().map(|e| e.event).collect();
    assert_eq!(events, ["Event1", "Event2"]);
}
