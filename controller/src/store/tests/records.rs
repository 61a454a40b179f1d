//! What is kept with a host: credentials, signals, history; and who is told.

use super::*;

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
async fn s044_s045_of_two_mints_one_is_refused_and_the_newer_is_never_replaced() {
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
