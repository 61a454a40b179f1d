//! What is on disk: durable, private, of one version.

use super::*;

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

#[tokio::test]
async fn a_damaged_database_is_called_damaged_and_not_full() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("farrier.db"), [0xab; 8192]).unwrap();
    let refused = Store::open(dir.path()).unwrap_err().to_string();
    assert!(refused.contains("backup") && !refused.contains("free space"), "{refused}");
}

#[tokio::test]
async fn a_copy_of_the_database_file_alone_is_a_backup_once_the_store_is_closed() {
    let (dir, copy) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let store = Store::open(dir.path()).unwrap();
    store.create(host("a")).await.unwrap();
    // A reader is open too, and closes last.
    assert!(store.get::<PhysicalHost>(&key("a")).await.unwrap().is_some());
    drop(store);
    std::fs::copy(dir.path().join("farrier.db"), copy.path().join("farrier.db")).unwrap();
    let restored = Store::open(copy.path()).unwrap();
    assert!(restored.get::<PhysicalHost>(&key("a")).await.unwrap().is_some());
}

#[tokio::test]
async fn a_record_that_cannot_be_read_hides_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    store.create(host("a")).await.unwrap();
    store.put_signal(&key("a"), &signal("inspect")).await.unwrap();
    store.append_history(&key("a"), &entry(1)).await.unwrap();
    drop(store);
    let db = rusqlite::Connection::open(dir.path().join("farrier.db")).unwrap();
    // As a newer version may have left them.
    let strange = r#"{"key":"Rescue","value":"now"}"#;
    db.execute("INSERT INTO signals VALUES ('default', 'a', 'rescue', ?1)", [strange]).unwrap();
    db.execute("INSERT INTO history (namespace, name, body) VALUES ('default', 'a', ?1)", [strange]).unwrap();
    drop(db);
    let store = Store::open(dir.path()).unwrap();
    assert_eq!(store.signals(&key("a")).await.unwrap(), [signal("inspect")]);
    assert_eq!(store.history(&key("a")).await.unwrap(), [entry(1)]);
}

#[tokio::test]
async fn s065_credentials_without_a_nonce_are_none_that_could_sign() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    store.create(host("a")).await.unwrap();
    store.put_credentials(&key("a"), &credentials("run"), None).await.unwrap();
    drop(store);
    let db = rusqlite::Connection::open(dir.path().join("farrier.db")).unwrap();
    assert_eq!(db.execute("UPDATE credentials SET body = json_remove(body, '$.nonce')", []).unwrap(), 1);
    drop(db);
    let store = Store::open(dir.path()).unwrap();
    let error = store.credentials(&key("a")).await.unwrap_err();
    assert!(matches!(error, StoreError::Encoding { .. }), "{error}");
    assert!(!error.to_string().contains(credentials("run").token.expose()), "{error}");
}

#[test]
fn a_directory_of_everybody_is_not_taken_over() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o1777)).unwrap();
    let refused = Store::open(dir.path()).unwrap_err().to_string();
    assert!(refused.contains("shared by all users") && refused.contains("--data-dir"), "{refused}");
    assert_eq!(std::fs::metadata(dir.path()).unwrap().permissions().mode() & 0o7777, 0o1777);
}
