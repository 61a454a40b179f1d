//! Runs fuzz targets over the committed corpus: part of the unit tests of each crate that has targets.

use std::path::Path;

/// A target and its name, which is that of its corpus.
pub(super) type Target = (&'static str, fn(&[u8]));

/// Feeds each target all inputs of its corpus, which must not be empty.
pub(super) fn take_every_input(targets: &[Target]) {
    for (name, target) in targets {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fuzz/corpus").join(name);
        let mut inputs = 0;
        for entry in std::fs::read_dir(&dir).unwrap() {
            target(&std::fs::read(entry.unwrap().path()).unwrap());
            inputs += 1;
        }
        assert!(inputs > 0, "{} is empty", dir.display());
    }
}

/// Feeds each target no bytes at all.
pub(super) fn take_nothing(targets: &[Target]) {
    for (_, target) in targets {
        target(&[]);
    }
}
