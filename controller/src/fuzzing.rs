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
#[path = "../../tests/fuzz/corpus.rs"]
mod corpus;

#[cfg(test)]
mod tests {
    use super::corpus::{self, Target};

    /// Each target and its name, which is that of its corpus.
    const TARGETS: &[Target] = &[
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
        corpus::take_every_input(TARGETS);
    }

    #[test]
    fn nothing_at_all_is_taken_without_a_fault() {
        corpus::take_nothing(TARGETS);
    }
}
