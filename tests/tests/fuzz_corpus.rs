//! Every fuzz target is built, has a corpus, and every corpus has a target.

#![expect(clippy::unwrap_used, reason = "a test: what cannot be read fails it")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use toml::Table;

fn names(dir: &Path) -> BTreeSet<String> {
    let stem = |path: &Path| path.file_stem().unwrap().to_str().unwrap().to_owned();
    fs::read_dir(dir).unwrap().map(|entry| stem(&entry.unwrap().path())).collect()
}

#[test]
fn targets_corpora_and_programs_are_the_same_list() {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz");
    let manifest: Table = toml::from_str(&fs::read_to_string(fuzz.join("Cargo.toml")).unwrap()).unwrap();
    let programs = manifest["bin"].as_array().unwrap().iter();
    let programs: BTreeSet<String> = programs.map(|bin| bin["name"].as_str().unwrap().to_owned()).collect();
    assert!(!programs.is_empty());
    assert_eq!(programs, names(&fuzz.join("fuzz_targets")));
    assert_eq!(programs, names(&fuzz.join("corpus")));
}

#[test]
fn the_corpus_stays_small() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus");
    let files = names(&corpus).into_iter().flat_map(|target| fs::read_dir(corpus.join(target)).unwrap());
    let bytes: u64 = files.map(|file| file.unwrap().metadata().unwrap().len()).sum();
    assert!(bytes < 500_000, "{bytes} bytes");
}
