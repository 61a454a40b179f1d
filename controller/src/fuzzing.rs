//! The way in for fuzzers: each parser of foreign bytes, fed with any bytes at all.
//!
//! A target checks by itself what must hold of whatever comes out, so that a fuzzer finds more than panics. The
//! corpus in `tests/fuzz/corpus` runs through the same functions in the unit tests.

pub use crate::bmc::fuzzing::address_list;
pub use crate::bmc::redfish::fuzzing::redfish;
pub use crate::callback::fuzzing::{callback, report};
pub use crate::cli::fuzzing::manifest;
pub use crate::images::fuzzing::range;
pub use crate::reconcile::fuzzing::checksum;

#[cfg(test)]
mod tests {
    use std::path::Path;

    type Target = fn(&[u8]);

    /// Each target and its name, which is that of its corpus.
    const TARGETS: &[(&str, Target)] = &[
        ("address_list", super::address_list),
        ("callback", super::callback),
        ("checksum", super::checksum),
        ("manifest", super::manifest),
        ("range", super::range),
        ("redfish", super::redfish),
        ("report", super::report),
    ];

    #[test]
    fn every_input_of_the_corpus_is_taken_without_a_fault() {
        for (name, target) in TARGETS {
            let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fuzz/corpus").join(name);
            let mut inputs = 0;
            for entry in std::fs::read_dir(&dir).unwrap() {
                target(&std::fs::read(entry.unwrap().path()).unwrap());
                inputs += 1;
            }
            assert!(inputs > 0, "{} is empty", dir.display());
        }
    }

    #[test]
    fn nothing_at_all_is_taken_without_a_fault() {
        for (_, target) in TARGETS {
            target(&[]);
        }
    }
}
