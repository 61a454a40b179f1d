//! Two promises of the store: what was answered survives a kill, and whatever is done in whatever order, it
//! behaves like a map with compare-and-swap.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use farrier_controller::store::{Store, StoreError};
use farrier_shared::contract::{HostKey, Name};
use farrier_shared::resource::secret::SecretBytes;
use farrier_shared::resource::{ObjectMeta, Resource as _, Secret};
use proptest::prelude::*;

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

fn key(text: &str) -> HostKey {
    HostKey::new(name("default"), name(text))
}

fn secret(text: &str, value: u64) -> Secret {
    let data = BTreeMap::from([("value".to_owned(), SecretBytes::new(value.to_string().into_bytes()))]);
    Secret::new(ObjectMeta::new(name("default"), name(text)), data)
}

fn value(secret: &Secret) -> u64 {
    std::str::from_utf8(secret.data["value"].expose()).unwrap().parse().unwrap()
}

const CHILD: &str = "FARRIER_TEST_STORE_TO_WRITE";

/// The same program is writer and judge: it starts itself, kills itself, and reads what it had acknowledged.
#[test]
fn what_was_acknowledged_survives_a_kill_at_any_moment() {
    if let Some(dir) = std::env::var_os(CHILD) {
        write_for_ever(Path::new(&dir));
    }
    let dir = tempfile::tempdir().unwrap();
    let mut acknowledged = BTreeMap::new();
    // Each round is killed a little later than the one before, and begins where that left off.
    for round in 1..=5 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "what_was_acknowledged_survives_a_kill_at_any_moment", "--nocapture"])
            .env(CHILD, dir.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut seen = 0;
        for line in lines {
            let Ok(line) = line else { break };
            let Some((object, written)) = line.strip_prefix("ok ").and_then(|l| l.split_once(' ')) else {
                continue;
            };
            acknowledged.insert(object.to_owned(), written.parse::<u64>().unwrap());
            seen += 1;
            if seen == round * 37 {
                child.kill().unwrap();
            }
        }
        child.wait().unwrap();
        assert!(seen >= round * 37, "the writer ended by itself after {seen} writes");
        let found = tokio::runtime::Runtime::new().unwrap().block_on(async {
            let store = Store::open(dir.path()).unwrap();
            let all = store.list::<Secret>(None).await.unwrap();
            all.iter().map(|s| (s.metadata.name.to_string(), value(s))).collect::<BTreeMap<_, _>>()
        });
        for (object, written) in &acknowledged {
            // One write may have become durable without its answer having been read.
            assert!(
                found[object] >= *written,
                "{object}: {written} was acknowledged, {} found",
                found[object]
            );
        }
    }
}

fn write_for_ever(dir: &Path) -> ! {
    let ended = tokio::runtime::Runtime::new().unwrap().block_on(async {
        let store = Store::open(dir).unwrap();
        let mut writers = tokio::task::JoinSet::new();
        for writer in 0..8 {
            writers.spawn(count(store.clone(), format!("w{writer}")));
        }
        writers.join_next().await
    });
    panic!("a writer ended: {ended:?}");
}

async fn count(store: Store, object: String) -> Result<(), StoreError> {
    let mut mine = match store.get::<Secret>(&key(&object)).await? {
        Some(mine) => mine,
        None => store.create(secret(&object, 0)).await?,
    };
    loop {
        let next = value(&mine) + 1;
        mine.data.insert("value".to_owned(), SecretBytes::new(next.to_string().into_bytes()));
        mine = store.update(&mine).await?;
        println!("ok {object} {next}");
    }
}

/// One thing done to the store.
#[derive(Clone, Debug)]
enum Step {
    Create {
        object: u8,
        held: bool,
    },
    /// With the object as it was read `age` reads ago.
    Update {
        object: u8,
        age: usize,
        value: u64,
    },
    LetGo {
        object: u8,
    },
    Delete {
        object: u8,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let object = 0..3u8;
    prop_oneof![
        (object.clone(), any::<bool>()).prop_map(|(object, held)| Step::Create { object, held }),
        (object.clone(), 0..3usize, any::<u64>()).prop_map(|(object, age, value)| Step::Update {
            object,
            age,
            value
        }),
        object.clone().prop_map(|object| Step::LetGo { object }),
        object.prop_map(|object| Step::Delete { object }),
    ]
}

#[derive(Debug)]
struct Model {
    value: u64,
    held: bool,
    deleting: bool,
    version: String,
}

async fn follow(steps: Vec<Step>) {
    let store = Store::in_memory().unwrap();
    let mut model = BTreeMap::<u8, Model>::new();
    let mut reads = BTreeMap::<u8, Vec<Secret>>::new();
    let mut versions = std::collections::BTreeSet::new();
    for step in steps {
        match step {
            Step::Create { object, held } => {
                let mut new = secret(&format!("o{object}"), 0);
                new.metadata.finalizers = held.then(|| "held".to_owned()).into_iter().collect();
                match store.create(new).await {
                    Ok(made) => {
                        let version = made.metadata.resource_version.clone();
                        assert!(versions.insert(version.clone()), "a version came back");
                        let fresh = Model { value: 0, held, deleting: false, version };
                        assert!(model.insert(object, fresh).is_none(), "created twice");
                        reads.entry(object).or_default().push(made);
                    }
                    Err(error) => {
                        assert!(matches!(error, StoreError::AlreadyExists { kind: Secret::KIND, .. }));
                        assert!(model.contains_key(&object));
                    }
                }
            }
            Step::Update { object, age, value } => {
                let Some(mut old) = reads.get(&object).and_then(|r| r.iter().rev().nth(age)).cloned() else {
                    continue;
                };
                old.data.insert("value".to_owned(), SecretBytes::new(value.to_string().into_bytes()));
                let expected = model.get_mut(&object);
                match (store.update(&old).await, expected) {
                    (Ok(new), Some(now)) => {
                        assert_eq!(old.metadata.resource_version, now.version, "a stale write won");
                        (now.value, now.version) = (value, new.metadata.resource_version.clone());
                        versions.insert(now.version.clone());
                        reads.entry(object).or_default().push(new);
                    }
                    (Err(StoreError::Conflict { .. }), Some(now)) => {
                        assert_ne!(old.metadata.resource_version, now.version, "a fresh write lost");
                    }
                    (Err(StoreError::NotFound { .. }), None) => {}
                    (other, now) => panic!("{other:?} with {now:?}"),
                }
            }
            Step::LetGo { object } => {
                let Some(mut mine) = store.get::<Secret>(&key(&format!("o{object}"))).await.unwrap() else {
                    assert!(!model.contains_key(&object));
                    continue;
                };
                mine.metadata.finalizers.clear();
                let new = store.update(&mine).await.unwrap();
                let now = model.get_mut(&object).unwrap();
                if now.deleting {
                    model.remove(&object);
                } else {
                    (now.held, now.version) = (false, new.metadata.resource_version.clone());
                    versions.insert(now.version.clone());
                    reads.entry(object).or_default().push(new);
                }
            }
            Step::Delete { object } => {
                let done = store.delete::<Secret>(&key(&format!("o{object}"))).await;
                match model.get_mut(&object) {
                    None => assert!(matches!(done, Err(StoreError::NotFound { .. }))),
                    Some(now) if now.held => {
                        done.unwrap();
                        now.deleting = true;
                        let left = store.get::<Secret>(&key(&format!("o{object}"))).await.unwrap().unwrap();
                        assert!(left.metadata.deletion_timestamp.is_some());
                        now.version.clone_from(&left.metadata.resource_version);
                        versions.insert(now.version.clone());
                        reads.entry(object).or_default().push(left);
                    }
                    Some(_) => {
                        done.unwrap();
                        model.remove(&object);
                    }
                }
            }
        }
        let found = store.list::<Secret>(None).await.unwrap();
        let shown = found.iter().map(|s| (s.metadata.name.to_string(), value(s))).collect::<Vec<_>>();
        let wanted = model.iter().map(|(object, m)| (format!("o{object}"), m.value)).collect::<Vec<_>>();
        assert_eq!(shown, wanted);
    }
}

proptest! {
    #[test]
    fn any_sequence_of_operations_keeps_compare_and_swap_and_finalizers(
        steps in prop::collection::vec(step(), 1..40)
    ) {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(follow(steps));
    }
}
